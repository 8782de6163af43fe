package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
)

const (
	// MaxProblems bounds what a Report lists; the rest is counted.
	MaxProblems = 1000
	// checkPage is how many pairs one snapshot of a check covers.
	checkPage = 256
	// checkOwners bounds the contents whose owners are in memory at a time
	// (32 MiB); a larger store is walked in several passes.
	checkOwners = 1 << 20
	// checkSuspects bounds the suspicions that are confirmed together.
	checkSuspects = 4096
	// youngBlob is the age below which a blob that nothing names may be on
	// its way to be named, by a writer that has just committed it.
	youngBlob = time.Minute
	// readBufferBytes is how much of a blob is read at a time.
	readBufferBytes = 1 << 20
	// mendsPerKey bounds the repairs of what hangs on one key.
	mendsPerKey = 16
)

// Options of Check.
type Options struct {
	Repair bool // mend what is safe to mend
	Data   bool // read and verify all bytes too
}

// Report is what Check found.
type Report struct {
	Inodes, Directories, Files, Contents, Extents, Blobs int64
	Bytes                                                int64
	Problems                                             []Problem
	Dropped                                              int64 // problems over MaxProblems, counted only
	Repaired                                             int64 // of all, listed or not
	Mendable                                             int64 // not repaired, and Repair would
	// Damaged blobs that no file uses any more, kept until they are released.
	Aside, AsideBytes int64
}

// Problem is one finding of Check.
type Problem struct {
	Kind     string // stable word: "orphan-blob", "missing-blob", "nlink", …
	Detail   string
	Repaired bool
}

// Config is what a check works on.
type Config struct {
	Store     Store
	Blobs     *quarantine.Blobs
	Leftovers *Leftovers
}

// Check walks everything (vfs.FS.Check).
func Check(ctx context.Context, cfg Config, o Options) (Report, error) {
	c := &checker{Config: cfg, ctx: ctx, o: o, rooted: make(map[record.Ino]bool), corrupt: make(map[record.Ino]bool), parts: make(map[cluster.BlobID]bool)}
	err := c.run()
	return c.rep, err
}

type checker struct {
	Config
	ctx    context.Context
	o      Options
	rep    Report
	rooted map[record.Ino]bool // directories known to lead to the root
	// corrupt are the files whose bytes were found damaged.
	corrupt map[record.Ino]bool
	// missing are blobs that files use, at most MaxProblems.
	missing []missingBlob
	// parts are the blobs of parts that are reported as theirs.
	parts map[cluster.BlobID]bool
}

func (c *checker) run() error {
	// checkContents has holds made again that checkShared misses.
	steps := []func() error{c.checkInodes, c.checkDentries, c.checkTables, c.checkContents, c.checkShared}
	if c.o.Data {
		steps = append(steps, c.checkData)
	}
	steps = append(steps, c.checkQuarantine, c.checkMissing)
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("check: %w", err)
		}
	}
	return nil
}

// finding is a problem and what would mend it.
type finding struct {
	kind, detail string
	repair       Repair
}

// findings collects those of one snapshot.
type findings []finding

func (f *findings) add(kind string, repair Repair, format string, args ...any) {
	*f = append(*f, finding{kind, fmt.Sprintf(format, args...), repair})
}

// report takes findings, and mends them if asked: those that stay true.
func (c *checker) report(list findings) {
	for _, f := range list {
		switch {
		case c.o.Repair && repairable(f):
			c.mended(f, c.Store.Update(c.ctx, f.repair))
			continue
		case repairable(f):
			c.rep.Mendable++
		}
		c.add(Problem{Kind: f.kind, Detail: f.detail})
	}
}

func (c *checker) add(p Problem) {
	if p.Repaired {
		c.rep.Repaired++
	}
	if len(c.rep.Problems) < MaxProblems {
		c.rep.Problems = append(c.rep.Problems, p)
	} else {
		c.rep.Dropped++
	}
}

// pair is one key and its value.
type pair struct{ key, value []byte }

// walk calls fn with pages of the keys in [from, to), each within a snapshot
// of its own, and reports what fn finds.
func (c *checker) walk(from, to []byte, keysOnly bool, fn func(r cluster.Reader, page []pair, f *findings) error) error {
	for {
		var page []pair
		var found findings
		err := c.Store.View(c.ctx, func(r cluster.Reader) (err error) {
			found = nil
			if page, err = readPairs(r, from, to, keysOnly); err != nil {
				return err
			}
			return fn(r, page, &found)
		})
		if err != nil {
			return err
		}
		if c.o.Repair && slices.ContainsFunc(found, repairable) {
			if err := c.mend(page, found, fn); err != nil {
				return err
			}
			found = slices.DeleteFunc(found, repairable)
		}
		c.report(found)
		if len(page) < checkPage {
			return nil
		}
		from = append(page[len(page)-1].key, 0)
	}
}

func repairable(f finding) bool { return f.repair != nil }

// mend repairs what fn found on a page. Each repair is made by a transaction in which fn finds
// the same again: since the snapshot a name may have come or gone. What it does not find again
// is no problem.
func (c *checker) mend(page []pair, found findings, fn func(r cluster.Reader, page []pair, f *findings) error) error {
	seen := make(map[string]bool) // by their details
	var failed error
	for _, p := range page {
		for range mendsPerKey {
			var now *finding
			counts := c.rep // fn counts
			err := c.Store.Update(c.ctx, func(t cluster.Txn, r Repairer) error {
				now = nil
				v, err := t.Get(p.key)
				if err != nil || v == nil {
					return err
				}
				var again findings
				if err := fn(t, []pair{{p.key, v}}, &again); err != nil {
					return err
				}
				i := slices.IndexFunc(again, func(f finding) bool { return repairable(f) && !seen[f.detail] })
				if i < 0 {
					return nil
				}
				now = &again[i]
				return now.repair(t, r)
			})
			c.rep = counts
			if now == nil {
				failed = cmp.Or(failed, err)
				break
			}
			seen[now.detail] = true
			c.mended(*now, err)
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
	for _, f := range found {
		if repairable(f) && !seen[f.detail] && failed != nil {
			c.mended(f, failed)
		}
	}
	return nil
}

// mended reports a finding whose repair returned err.
func (c *checker) mended(f finding, err error) {
	p := Problem{Kind: f.kind, Detail: f.detail, Repaired: err == nil}
	if err != nil {
		p.Detail += fmt.Sprintf(" (repair failed: %v)", err)
	}
	c.add(p)
}

func readPairs(r cluster.Reader, from, to []byte, keysOnly bool) (page []pair, err error) {
	o := cluster.ScanOptions{Limit: checkPage, KeysOnly: keysOnly}
	err = r.Scan(from, to, o, func(k, v []byte) error {
		page = append(page, pair{append([]byte(nil), k...), append([]byte(nil), v...)})
		return nil
	})
	return page, err
}

// deleteKey is a repair.
func deleteKey(k []byte) Repair {
	return func(t cluster.Txn, _ Repairer) error { return t.Delete(k) }
}

// damaged distinguishes errors that are findings from those that end the check.
func damaged(err error) bool {
	return errors.Is(err, fserr.ErrCorrupt) || errors.Is(err, fserr.ErrStale)
}
