package vfs

import (
	"context"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// maxRenamedKeys bounds the keys of a directory that policies are asked for one by
// one. Without policies a rename costs the same whatever lies below.
const maxRenamedKeys = 1000

// RenameOptions of RenameObject.
type RenameOptions struct {
	SourceCond Preconditions
	Cond       Preconditions // of what stands under the new key
}

// RenameObject moves an object of a bucket to another key, in one transaction, with
// all that belongs to it: bytes, ETag, dates, metadata, owner and ACL. What stood
// there is replaced. Where both keys end in "/" it moves the directory with all keys
// below it; the directory that it takes the place of must be empty. Like Rename it
// stores what was written to a file that replaces another one before, and does not look
// at what lies below a directory: where that gets keys of more than MaxKeyBytes, no call
// that takes keys reaches it until the directory has a shorter one.
//
// The caller needs the rights to read and delete the one and to write the other; of a
// directory, where policies can distinguish keys, for each key below it, of which
// there may be at most 1,000. Symbolic links are not moved, since they would lead
// elsewhere. ErrNoSuchKey, ErrPrecondition, ErrAccess, ErrNotEmpty, ErrInvalid (S3
// RenameObject).
func (fs *FS) RenameObject(ctx context.Context, bucket, from, to string, o RenameOptions) error {
	ctx = fs.objectCtx(ctx, ObjectName{bucket, to})
	source, err := parseKey(ObjectName{bucket, from})
	if err != nil {
		return err
	}
	target, err := parseKey(ObjectName{bucket, to})
	if err != nil {
		return err
	}
	switch {
	case bucket == "":
		return fmt.Errorf("%w: no bucket", ErrInvalid)
	case source.Dir && !objects.NoConditions(&o.SourceCond):
		return fmt.Errorf("%w: conditions are for objects, %q is a directory", ErrInvalid, from)
	case source.Dir != target.Dir:
		return fmt.Errorf("%w: %q and %q are of two kinds", ErrInvalid, from, to)
	}
	r := keyRenaming{fs: fs, from: &source, to: &target, cond: &o}
	if !objects.NoConditions(&o.SourceCond) || !objects.NoConditions(&o.Cond) {
		for _, k := range []*keypath.Key{&source, &target} { // conditions are about all that was acknowledged
			if err := fs.flushKey(ctx, k); err != nil {
				return err
			}
		}
	}
	err = fs.updateFlushed(ctx, func(t cluster.Txn, o *op, f *flushing) error { return r.run(ctx, t, o, f) })
	if len(source.Names) > len(target.Names) {
		return fs.tooDeep(err, &source)
	}
	return fs.tooDeep(err, &target)
}

// flushKey flushes what this process wrote to the file under a key.
func (fs *FS) flushKey(ctx context.Context, k *keypath.Key) error {
	var ino Ino
	err := fs.view(ctx, func(r cluster.Reader) error {
		at, err := keypath.Locate(r, k)
		if ino = 0; err == nil && at.Entry != nil {
			ino = at.Entry.Ino
		}
		return err
	})
	if err != nil || ino == 0 {
		return err
	}
	return fs.flushInode(ctx, ino)
}

// keyRenaming is one RenameObject.
type keyRenaming struct {
	fs       *FS
	from, to *keypath.Key
	cond     *RenameOptions
}

// run is its transaction.
func (r *keyRenaming) run(ctx context.Context, t cluster.Txn, o *op, f *flushing) error {
	n, at, err := r.source(ctx, t)
	if err != nil {
		return err
	}
	old, into, err := r.target(ctx, t, n)
	if err != nil {
		return err
	}
	if old != nil && old.Ino == n.Ino {
		return nil // it is there, or another link of it
	}
	if old != nil && f.lacks(n) {
		return errUnflushed
	}
	dir := into.Dir()
	if n.IsDir() {
		d, err := record.GetInode(t, dir)
		if err == nil {
			err = notBelow(t, d, n.Ino)
		}
		if err != nil {
			return err
		}
	}
	if len(into.Missing) > 0 {
		if dir, err = o.makeImplied(t, dir, into.Missing, NewCred(n.UID, n.GID)); err != nil {
			return err
		}
	}
	if err := r.clear(t, o, old, dir); err != nil {
		return err
	}
	return r.move(t, o, n, at, dir)
}

// source finds what is to be moved, and checks that it may be.
func (r *keyRenaming) source(ctx context.Context, t cluster.Txn) (*record.Inode, *keypath.Place, error) {
	at, err := keypath.Locate(t, r.from)
	if err != nil {
		return nil, nil, err
	}
	j := r.fs.rights.OnKey(ctx, t, r.from, &at)
	if at.Entry == nil {
		if err := j.Reach(r.from, &at); err != nil {
			return nil, nil, err
		}
		return nil, nil, j.Hide(r.from.NoSuchKey())
	}
	p := publication{key: r.from, cond: &Preconditions{}, remove: true}
	n, err := checkTarget(&j, &p, &at)
	if err != nil {
		return nil, nil, err
	}
	if n.IsDir() {
		return n, &at, r.below(ctx, t, &j, &at, n)
	}
	if !n.IsRegular() {
		return nil, nil, fmt.Errorf("%w: %q is a symbolic link or a special file, which has no other key", ErrInvalid, r.from.Key)
	}
	if err := j.Grants(ActReadObject, n); err != nil {
		return nil, nil, err
	}
	if err := j.Mode(n, AccessRead); err != nil {
		return nil, nil, err
	}
	return n, &at, objects.CheckRead(&r.cond.SourceCond, objects.ETagOf(n), modifiedAt(n))
}

// below checks the rights to move a directory: its own, and where policies can distinguish
// keys, those to each key below it.
func (r *keyRenaming) below(ctx context.Context, t cluster.Txn, j *rights.Judge, at *keypath.Place, n *record.Inode) error {
	if err := j.Entry(at.Deepest(), n); err != nil {
		return err
	}
	if err := j.Mode(n, AccessWrite); err != nil { // its ".." is written
		return err
	}
	if j.Free() {
		return nil
	}
	if by, err := j.ByKeys(); err != nil || !by {
		return err
	}
	page, err := listing.Names(t, at.Trail[0], listing.Options{Prefix: r.from.Key, MaxKeys: maxRenamedKeys})
	if err != nil {
		return err
	}
	if page.Truncated {
		return fmt.Errorf("policies go by keys, and %q holds more than %d: %w", r.from.Key, maxRenamedKeys, ErrAccess)
	}
	for i := range page.Objects {
		if err := r.mayMove(t, *j, &page.Objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// mayMove asks the policies for one key below a directory.
func (r *keyRenaming) mayMove(t cluster.Txn, j rights.Judge, ob *listing.Object) error {
	n, err := record.GetInode(t, ob.Ino)
	if err != nil {
		return err
	}
	j.Key = ob.Key
	for _, act := range []Action{ActReadObject, ActDeleteObject} {
		if err := j.Grants(act, n); err != nil {
			return err
		}
	}
	j.Key = r.to.Key + ob.Key[len(r.from.Key):]
	if err := j.Grants(ActWriteObject, nil); err != nil {
		return err
	}
	return j.Describes(ActWriteObject, describedBy(n))
}

// describedBy is what an object takes along that policies know as actions of their
// own.
func describedBy(n *record.Inode) *ObjectMeta {
	return &ObjectMeta{Headers: n.Object.Headers, Grants: n.Grants}
}

// target finds where n goes, and what is there, and checks that it may.
func (r *keyRenaming) target(ctx context.Context, t cluster.Txn, n *record.Inode) (*record.Inode, *keypath.Place, error) {
	at, err := keypath.Locate(t, r.to)
	if err != nil {
		return nil, nil, err
	}
	j := r.fs.rights.OnKey(ctx, t, r.to, &at)
	p := publication{key: r.to, cond: &r.cond.Cond}
	old, err := checkTarget(&j, &p, &at)
	if err != nil {
		return nil, nil, err
	}
	if err := j.Describes(ActWriteObject, describedBy(n)); err != nil {
		return nil, nil, err
	}
	if since := r.cond.Cond.IfModifiedSince; !since.IsZero() && (old == nil || !modifiedAt(old).Truncate(time.Second).After(since)) {
		return nil, nil, &ConditionError{Condition: "If-Modified-Since", Err: ErrPrecondition}
	}
	if old != nil { // its entry goes, unlike a PUT's
		err = j.Entry(at.Deepest(), old)
	}
	return old, &at, err
}

// clear takes away what stands under the new key, in directory dir.
func (r *keyRenaming) clear(t cluster.Txn, o *op, old *record.Inode, dir Ino) error {
	if old == nil {
		return nil
	}
	if !old.IsDir() {
		return o.dropLink(t, old, dir, r.to.Last())
	}
	empty, err := isEmpty(t, old.Ino)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%q: %w", r.to.Key, ErrNotEmpty)
	}
	return o.dropDir(t, old)
}

// move gives n its new entry, and takes the old one with the directories that it
// leaves empty.
func (r *keyRenaming) move(t cluster.Txn, o *op, n *record.Inode, at *keypath.Place, dir Ino) error {
	d, f, err := record.GetDentries(t, dir, r.to.Last())
	if err != nil {
		return err
	}
	into := place{dir: &record.Inode{Ino: dir}, found: found{name: naming.Posix{Stored: r.to.Last()}, dir: d, file: f, e: f}}
	if r.to.Dir {
		into.e = d
	}
	parent, err := record.GetInode(t, at.Dir())
	if err != nil {
		return err
	}
	moving := renaming{o: o, t: t}
	if err := moving.put(&into, n, &place{dir: parent, found: found{e: at.Entry}}); err != nil {
		return err
	}
	return o.removeEntry(t, at.Dir(), at.Entry)
}
