package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// pathArg explains the argument of whereis and purge.
const pathArg = "bucket/path, or HOST/path as the S3 door takes it"

// whereis prints who holds an object.
type whereis struct {
	common
	path string
}

func whereisCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "whereis", Usage: "print who holds the bytes of an object", ArgsUsage: "PATH",
		Description: "PATH is " + pathArg + ".\nPrints every extent with the nodes or files that hold it, and whether the object\nexists (exit code 3 if not).",
		Flags:       commonFlags(),
		Action:      action(func() command { return &whereis{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (w *whereis) ParseFlags(c *cli.Context) (err error) {
	if w.path, err = oneArg(c, pathArg); err != nil {
		return err
	}
	return w.common.ParseFlags(c)
}

// Run implements command.
func (w *whereis) Run(ctx context.Context) error {
	return w.with(ctx, func(s *session) error {
		found, err := s.Whereis(ctx, w.path)
		if err != nil {
			return err
		}
		if w.json {
			err = w.printJSON(found)
		} else {
			err = w.print(found)
		}
		if err == nil && !found.Exists {
			return &exitError{code: exitNotFound}
		}
		return err
	})
}

func (w *whereis) print(found admin.Whereis) error {
	if !found.Exists {
		w.printf("%s does not exist\n", found.Path)
		return nil
	}
	if found.Directory {
		w.printf("%s exists: a directory, inode %d, modified %s\n", found.Path, found.Inode, found.Modified.Format(time.RFC3339))
		if found.Size == 0 {
			return nil
		}
	}
	w.printf("%s exists: %d bytes, ETag %q, modified %s, inode %d\n", found.Path, found.Size, found.ETag,
		found.Modified.Format(time.RFC3339), found.Inode)
	if len(found.Extents) == 0 {
		return nil // empty: nobody holds anything
	}
	rows := [][]string{{"OFFSET", "LENGTH", "KIND", "BLOB", "NODE", "WHERE"}}
	for _, e := range found.Extents {
		row := []string{itoa(e.Offset), itoa(e.Length), e.Kind, e.Blob}
		if len(e.Copies) == 0 {
			where := ""
			if e.Kind == "inline" {
				where = "in the metadata"
			}
			rows = append(rows, append(row, "", where))
		}
		for i, c := range e.Copies {
			if i > 0 {
				row = []string{"", "", "", ""}
			}
			node, where := c.Node, c.Path
			if c.Address != "" {
				node += " (" + c.Address + ")"
			}
			if c.Detail != "" {
				where += " (" + c.Detail + ")"
			}
			if c.Primary && len(e.Copies) > 1 {
				where += " primary"
			}
			rows = append(rows, append(row[:4:4], node, where))
		}
	}
	return w.table(rows)
}

// purge drops a path from caches.
type purge struct {
	common
	path string
}

func purgeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "purge", Usage: "drop a path from the caches of every gateway", ArgsUsage: "PATH",
		Description: "PATH is " + pathArg + ". With a final slash, all below it.\nNothing is removed from the store. Where several gateways use it, all are asked, and\nthe exit code is 1 if one does not answer within some eight seconds.",
		Flags:       commonFlags(),
		Action:      action(func() command { return &purge{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (p *purge) ParseFlags(c *cli.Context) (err error) {
	if p.path, err = oneArg(c, pathArg); err != nil {
		return err
	}
	return p.common.ParseFlags(c)
}

// Run implements command.
func (p *purge) Run(ctx context.Context) error {
	return p.with(ctx, func(s *session) error {
		done, err := s.Purge(ctx, p.path)
		if err != nil {
			return err
		}
		if p.json {
			err = p.printJSON(done)
		} else {
			err = p.print(done, s.running)
		}
		return cmp.Or(err, purgeError(done.Others))
	})
}

func (p *purge) print(done admin.Purged, running bool) error {
	if running {
		p.printf("%s: dropped from the caches (%d %s)\n", done.Path, done.Inodes, plural(done.Inodes, "inode"))
	} else {
		p.printf("no process serves %s: nothing is cached\n", p.cfg.Cluster.Dir)
	}
	rows := make([][]string, len(done.Others))
	for i := range done.Others {
		rows[i] = purgeRow(&done.Others[i])
	}
	return p.table(rows)
}

// purgeRow is what became of a purge at another gateway, for people.
func purgeRow(g *admin.PurgedGateway) []string {
	text := fmt.Sprintf("dropped from the caches (%d %s)", g.Inodes, plural(g.Inodes, "inode"))
	switch {
	case g.Gone:
		text = "has ended"
	case !g.Answered:
		text = "NO ANSWER"
	case g.Error != "":
		text = "FAILED: " + g.Error
	}
	return []string{"host " + g.Host + ", pid " + itoa(int64(g.PID)), text}
}

// purgeError is the error of a purge that did not reach all.
func purgeError(others []admin.PurgedGateway) error {
	n := 0
	for i := range others {
		if o := &others[i]; !o.Answered && !o.Gone || o.Error != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d other gateways may still show what they remember", n, len(others))
}

// check walks the store.
type check struct {
	common
	request admin.CheckRequest
}

func checkCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "walk everything and report what is wrong",
		Description: "Exit code 4 tells that problems are left.",
		Flags: append(commonFlags(),
			&cli.BoolFlag{Name: "repair", Usage: "mend what is safe to mend"},
			&cli.BoolFlag{Name: "data", Usage: "read and verify all bytes too"}),
		Action: action(func() command { return &check{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (k *check) ParseFlags(c *cli.Context) error {
	k.request = admin.CheckRequest{Repair: c.Bool("repair"), Data: c.Bool("data")}
	return errors.Join(noArgs(c), k.common.ParseFlags(c))
}

// Run implements command.
func (k *check) Run(ctx context.Context) error {
	return k.with(ctx, func(s *session) error {
		r, err := s.Check(ctx, k.request)
		if err != nil {
			return err
		}
		if k.json {
			err = k.printJSON(r)
		} else {
			k.print(r)
		}
		if err == nil && !r.Clean {
			return &exitError{code: exitProblems}
		}
		return err
	})
}

func (k *check) print(r admin.CheckReport) {
	for _, p := range r.Problems {
		mended := ""
		if p.Repaired {
			mended = " (mended)"
		}
		k.printf("%s: %s%s\n", p.Kind, p.Detail, mended)
	}
	if r.Dropped > 0 {
		k.printf("and %d more\n", r.Dropped)
	}
	k.printf("%d inodes (%d directories, %d files), %d contents, %d extents, %d blobs, %s\n",
		r.Inodes, r.Directories, r.Files, r.Contents, r.Extents, r.Blobs, bytesText(r.Bytes))
	if r.AsideBlobs > 0 {
		k.printf("%d damaged %s of %s, which no file uses any more, kept until ogw quarantine release\n",
			r.AsideBlobs, plural(int(r.AsideBlobs), "blob"), bytesText(r.AsideBytes))
	}
	switch {
	case r.Clean && len(r.Problems) == 0:
		k.printf("clean\n")
	case r.Clean:
		k.printf("clean now: all problems were mended\n")
	default:
		left := r.Left()
		problems := fmt.Sprintf("%d %s", left, plural(left, "problem"))
		switch {
		case r.Mendable > 0 && r.Mendable == left:
			problems += "; --repair mends " + map[bool]string{true: "it", false: "them"}[left == 1]
		case r.Mendable > 0:
			problems += fmt.Sprintf("; --repair mends %d of them", r.Mendable)
		}
		k.printf("%s\n", problems)
	}
}
