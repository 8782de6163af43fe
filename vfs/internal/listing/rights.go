package listing

import (
	"errors"
	"fmt"
	"strings"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// What listings ask their judge: the right to list the bucket, and of each
// directory that somebody chose a mode for, whether it is read and passed. One
// that is not is left out with all below it; others cost nothing, because their
// entries show.

// begin checks the right to list and runs.
func (l *lister) begin(root keypath.Step) error {
	if l.j.Free() || l.j.Subject.Local {
		return l.run(root)
	}
	bucket, prefix := root, l.o.Prefix
	if root.Ino == record.RootIno {
		name, below, inside := strings.Cut(l.o.Prefix, "/")
		if !inside || !naming.ValidBucket(name) {
			return fmt.Errorf("%w: only administrators list what is outside of buckets", fserr.ErrAccess)
		}
		e, err := keypath.BucketEntry(l.j.R, name)
		if err != nil {
			return err
		}
		bucket, prefix = keypath.StepTo(e), below
	}
	l.j.In(bucket)
	l.j.List = &rights.List{Prefix: prefix, Delimiter: l.o.Delimiter, MaxKeys: l.o.MaxKeys}
	if err := l.j.Grants(rights.ActListObjects, nil); err != nil {
		return err
	}
	if err := l.j.Dir(bucket, perm.AccessRead|perm.AccessExec); err != nil {
		return err
	}
	return l.run(root)
}

// hiddenWay reports whether a directory on the way to the prefix hides what is
// below it. To a local user that is an error, as for ls.
func (l *lister) hiddenWay() (bool, error) {
	if l.j.Free() {
		return false, nil
	}
	for i, d := range l.trail {
		mask := perm.AccessRead | perm.AccessExec
		if l.j.Subject.Local && i < len(l.trail)-1 {
			mask = perm.AccessExec
		}
		err := l.j.Dir(d, mask)
		if errors.Is(err, fserr.ErrAccess) && !l.j.Subject.Local {
			return true, nil
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

// hidden reports whether a directory that the walk meets is left out. To a
// local user names are shown that a directory holds which may be read.
func (l *lister) hidden(d keypath.Step, key string) (bool, error) {
	if l.j.Free() || l.j.Subject.Local && l.commonPrefix(key) != "" {
		return false, nil
	}
	err := l.j.Dir(d, perm.AccessRead|perm.AccessExec)
	if errors.Is(err, fserr.ErrAccess) {
		return true, nil
	}
	return false, err
}
