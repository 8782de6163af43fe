package vfs

import (
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

// maxLinkDepth bounds the symbolic links on one way, as Linux does (MAXSYMLINKS).
const maxLinkDepth = 40

// followLink returns the regular file that the symbolic link ino leads to.
// trail are the directories from the bucket's to the link's; the way must not
// leave the bucket, so absolute targets lead nowhere. ErrNoSuchKey if it
// leads to no regular file, ErrAccess if it passes a directory that j denies.
func (j *judge) followLink(trail []step, ino Ino) (*record.Inode, error) {
	r := j.r
	nowhere := fmt.Errorf("symbolic link: %w", ErrNoSuchKey)
	n, err := record.GetInode(r, ino)
	if err != nil {
		return nil, err
	}
	if trail[0].ino == RootIno && len(trail) > 1 {
		trail = trail[1:] // a key from the root on: its bucket comes first
	}
	way := append(make([]step, 0, len(trail)+8), trail...)
	names := j.linkNames(len(way))
	rest := n.Target
	for links := 1; links <= maxLinkDepth; {
		if rest == "" || rest[0] == '/' {
			return nil, nowhere
		}
		var name string
		var more bool
		name, rest, more = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		if name == ".." {
			if len(way) == 1 {
				return nil, nowhere
			}
			way, names = way[:len(way)-1], names[:len(names)-1]
			continue
		}
		if name == "." {
			continue
		}
		e, err := lookupShown(r, way[len(way)-1].ino, name)
		if err != nil {
			return nil, err
		}
		switch {
		case e == nil:
			return nil, nowhere
		case e.Dir:
			way, names = append(way, stepTo(e)), append(names, e.Name)
			if err := j.dir(stepTo(e), AccessExec); err != nil {
				return nil, err
			}
		case e.Mode == ModeSymlink:
			if n, err = record.GetInode(r, e.Ino); err != nil {
				return nil, err
			}
			if links++; more {
				rest = n.Target + "/" + rest
			} else {
				rest = n.Target
			}
		case e.Mode == ModeRegular && !more:
			j.linked = strings.Join(append(names, e.Name), "/")
			return record.GetInode(r, e.Ino)
		default:
			return nil, nowhere
		}
		if len(rest) > 2*MaxSymlinkBytes {
			return nil, nowhere
		}
	}
	return nil, nowhere
}

// lookupShown reads the entry that the POSIX doors show as name; nil if there
// is none.
func lookupShown(r cluster.Reader, dir Ino, name string) (*record.Dentry, error) {
	p, err := naming.ParsePosix(name)
	if err != nil {
		return nil, nil //nolint:nilerr // no entry can have that name
	}
	if p.Hash != nil {
		v, err := r.Get(record.LongNameKey(dir, p.Hash))
		if err != nil || v == nil {
			return nil, err
		}
		stored, isDir := strings.CutSuffix(string(v), "/")
		return record.GetDentry(r, dir, stored, isDir)
	}
	if p.File {
		return record.GetDentry(r, dir, p.Stored, false)
	}
	d, f, err := record.GetDentries(r, dir, p.Stored)
	if d == nil {
		d = f
	}
	return d, err
}

// linkNames are the names of the directories on a way from the bucket's to the key
// that is asked for, as far as a policy needs them.
func (j *judge) linkNames(steps int) []string {
	names := make([]string, steps-1, steps+8)
	if j.key != "" {
		copy(names, strings.Split(j.key, "/"))
	}
	return names
}
