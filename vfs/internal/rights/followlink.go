package rights

import (
	"errors"
	"fmt"
	"strings"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// maxLinkDepth bounds the symbolic links on one way, as Linux does (MAXSYMLINKS).
const maxLinkDepth = 40

// ObjectInode returns the inode that holds the content of a key: the file,
// the one that a symbolic link leads to within the bucket, or an explicit
// directory's own. ErrNoSuchKey, ErrAccess.
func (j *Judge) ObjectInode(k *keypath.Key, p *keypath.Place) (*record.Inode, error) {
	if p.Entry == nil {
		return nil, k.NoSuchKey()
	}
	switch p.Entry.Mode {
	case record.ModeSymlink:
		n, err := j.FollowLink(p.Trail, p.Entry.Ino)
		if errors.Is(err, fserr.ErrNoSuchKey) {
			err = fmt.Errorf("key %q: %w", k.Key, err)
		}
		return n, err
	case record.ModeRegular, record.ModeDirectory:
		n, err := record.GetInode(j.R, p.Entry.Ino)
		if err == nil && n.IsDir() && !n.Has(record.FlagExplicit) {
			return nil, k.NoSuchKey()
		}
		return n, err
	default:
		return nil, k.NoSuchKey()
	}
}

// FollowLink returns the regular file that the symbolic link ino leads to.
// trail are the directories from the bucket's to the link's; the way must not
// leave the bucket, so absolute targets lead nowhere. ErrNoSuchKey if it
// leads to no regular file, ErrAccess if it passes a directory that j denies.
func (j *Judge) FollowLink(trail []keypath.Step, ino record.Ino) (*record.Inode, error) {
	r := j.R
	nowhere := fmt.Errorf("symbolic link: %w", fserr.ErrNoSuchKey)
	n, err := record.GetInode(r, ino)
	if err != nil {
		return nil, err
	}
	if trail[0].Ino == record.RootIno && len(trail) > 1 {
		trail = trail[1:] // a key from the root on: its bucket comes first
	}
	way := append(make([]keypath.Step, 0, len(trail)+8), trail...)
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
		e, err := keypath.LookupShown(r, way[len(way)-1].Ino, name)
		if err != nil {
			return nil, err
		}
		switch {
		case e == nil:
			return nil, nowhere
		case e.Dir:
			way, names = append(way, keypath.StepTo(e)), append(names, e.Name)
			if err := j.Dir(keypath.StepTo(e), perm.AccessExec); err != nil {
				return nil, err
			}
		case e.Mode == record.ModeSymlink:
			if n, err = record.GetInode(r, e.Ino); err != nil {
				return nil, err
			}
			if links++; more {
				rest = n.Target + "/" + rest
			} else {
				rest = n.Target
			}
		case e.Mode == record.ModeRegular && !more:
			j.linked = strings.Join(append(names, e.Name), "/")
			return record.GetInode(r, e.Ino)
		default:
			return nil, nowhere
		}
		if len(rest) > 2*record.MaxSymlinkBytes {
			return nil, nowhere
		}
	}
	return nil, nowhere
}

// linkNames are the names of the directories on a way from the bucket's to the key
// that is asked for, as far as a policy needs them.
func (j *Judge) linkNames(steps int) []string {
	names := make([]string, steps-1, steps+8)
	if j.Key != "" {
		copy(names, strings.Split(j.Key, "/"))
	}
	return names
}
