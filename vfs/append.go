package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/xattr"
)

// maxAppendAttempts bounds how often an append finds that its object was given
// another content concurrently, as by a copy, and moves its blobs there.
const maxAppendAttempts = 8

// AppendObject adds body to the end of an object, which must be at offset off, and
// returns the object as it is then (S3 PutObject with at a write offset). It
// is atomic and as durable as PutObject, and costs what the body does, however long
// the object is. Where there is no object, offset 0 makes one with o's metadata;
// with an object that exists there may be none. Owner, ACL and metadata stay; the
// ETag becomes opaque; of the checksums those stay that can be computed without reading
// the object: CRC64NVME, and CRC32 or CRC32C if o.Finish returns the same.
//
// It needs the right to read, too, since the answer shows the size. ErrWriteOffset,
// ErrInvalid for an empty body or what is no file, ErrTooLarge for more than one
// transaction of the engine stores (32 extents of 64 MiB, where transactions are
// limited).
func (fs *FS) AppendObject(ctx context.Context, name ObjectName, off int64, body io.Reader, o PutOptions) (ObjectInfo, error) {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return ObjectInfo{}, err
	}
	if k.Dir {
		return ObjectInfo{}, fmt.Errorf("%w: a directory is not appended to", ErrInvalid)
	}
	a := appending{fs: fs, key: &k, off: off, o: &o}
	n, err := a.look(ctx)
	if errors.Is(err, ErrNoSuchKey) && off == 0 {
		o.Cond.IfNoneMatch = []ETag{"*"}
		info, err := fs.PutObject(ctx, name, body, o)
		if errors.Is(err, ErrPrecondition) {
			err = fmt.Errorf("an object was made meanwhile: %w", ErrWriteOffset)
		}
		return info, err
	}
	if err != nil {
		return ObjectInfo{}, err
	}
	if m := &o.Meta; len(m.User) > 0 || m.Grants != nil || m.Tags() != "" {
		return ObjectInfo{}, fmt.Errorf("object %q: %w", name.Key, ErrAppendMeta)
	}
	return a.run(ctx, n, body)
}

// appending is one AppendObject to an object that exists.
type appending struct {
	fs  *FS
	key *keypath.Key
	off int64
	o   *PutOptions

	id    ContentID // that the body's blobs belong to
	fresh ContentID // for an object whose content must not change in place
	c     *content.Written
	sums  []Checksum // that the client stated of the body
}

// look returns the object as it is now, with all that this process wrote to it. The
// transaction that appends looks again.
func (a *appending) look(ctx context.Context) (n *record.Inode, err error) {
	if err := a.fs.flushKey(ctx, a.key); err != nil {
		return nil, err
	}
	err = a.fs.view(ctx, func(r cluster.Reader) (err error) {
		n, err = a.find(ctx, r)
		return err
	})
	return n, err
}

// find reads the object, which must be one that can be appended to by the caller.
func (a *appending) find(ctx context.Context, r cluster.Reader) (*record.Inode, error) {
	at, err := keypath.Locate(r, a.key)
	if err != nil {
		return nil, err
	}
	j := a.fs.rights.OnKey(ctx, r, a.key, &at)
	p := publication{key: a.key, cond: &a.o.Cond, bucket: a.o.Bucket}
	var n *record.Inode
	if at.Entry != nil {
		if n, err = record.GetInode(r, at.Entry.Ino); err != nil {
			return nil, err
		}
	}
	if err := j.Write(a.key, a.o.Bucket, nil, &at, n); err != nil {
		return nil, err
	}
	if err := checkConditions(&j, &p, &at, n); err != nil {
		return nil, err
	}
	switch {
	case n == nil:
		return nil, j.Hide(a.key.NoSuchKey())
	case !n.IsRegular():
		return nil, fmt.Errorf("%w: %q is a symbolic link or a special file", ErrInvalid, a.key.Key)
	}
	if err := j.Grants(ActReadObject, n); err != nil {
		return nil, err
	}
	if err := j.Mode(n, AccessRead); err != nil {
		return nil, err
	}
	if s := rights.SubjectOf(ctx); n.Nlink > 1 && !rights.MayAll(s) && !rights.Owns(s, n) {
		return nil, fmt.Errorf("%q has other links and another owner: %w", a.key.Key, ErrAccess)
	}
	if n.Size != a.off {
		return nil, fmt.Errorf("object of %d bytes, offset %d: %w", n.Size, a.off, ErrWriteOffset)
	}
	return n, perm.FlagsOf(n).CheckWrite(a.off, n.Size)
}

// run receives the body as blobs of the content that the object has, and then names
// them in it.
func (a *appending) run(ctx context.Context, n *record.Inode, body io.Reader) (ObjectInfo, error) {
	fs := a.fs
	id, err := fs.ids.Take(ctx)
	if err != nil {
		return ObjectInfo{}, err
	}
	a.fresh = ContentID(id)
	if a.id = a.fresh; n.Content != 0 && !n.Has(record.FlagShared) {
		a.id = n.Content
	}
	fs.contents.Pins.Pin(a.id) // what looks for orphans must not take the blobs
	defer func() { fs.contents.Pins.Unpin(a.id) }()
	b := a.o.body(body, MaxObjectBytes)
	b.ID = a.id
	v, err := fs.bodies.Receive(ctx, b)
	if err != nil {
		return ObjectInfo{}, err
	}
	defer v.Release()
	a.c, a.sums = v.Content, v.Checksums
	switch {
	case a.c.Size == 0:
		return ObjectInfo{}, fmt.Errorf("%w: nothing to append", ErrInvalid)
	case a.off > MaxFileBytes-a.c.Size:
		err = ErrFileTooLarge
	case len(a.c.Extents) > extents.PerTxn(fs.kv)/2:
		err = objects.TooLarge(int64(extents.PerTxn(fs.kv)/2) * cluster.MaxBlobBytes)
	default:
		return a.publish(ctx, n.Ino)
	}
	fs.contents.Discard(ctx, a.c)
	return ObjectInfo{}, err
}

// publish names the blobs in the object's content.
func (a *appending) publish(ctx context.Context, ino Ino) (ObjectInfo, error) {
	err := fmt.Errorf("object %q is being written: %w", a.key.Key, ErrConflict) // in each attempt
	for range maxAppendAttempts {
		var n *record.Inode
		e := a.fs.updateEnd(ctx, ino, func(t cluster.Txn, o *op) (err error) {
			n, err = a.store(ctx, t, o, ino)
			return err
		})
		if e == nil {
			info := plainInfo(a.key.Key, n)
			info.Checksums = checksumsIn(n)
			a.c.Published(true)
			return info, nil
		}
		var move *retargetError
		if errors.As(e, &move) { // the content is another one by now: the blobs are copied
			e = a.retarget(ctx, move.to)
		}
		if e != nil {
			err = e
			break
		}
	}
	if !errors.Is(err, ErrUnavailable) { // else the blobs may be named
		a.fs.contents.Discard(ctx, a.c)
	}
	a.c.Published(!errors.Is(err, ErrUnavailable))
	return ObjectInfo{}, a.fs.tooDeep(err, a.key)
}

// store is the transaction that appends.
func (a *appending) store(ctx context.Context, t cluster.Txn, o *op, ino Ino) (*record.Inode, error) {
	n, err := a.find(ctx, t)
	if err != nil {
		return nil, err
	}
	if n.Ino != ino {
		return nil, fmt.Errorf("object %q was replaced: %w", a.key.Key, ErrWriteOffset)
	}
	if err := o.contents.MakeWritable(t, n, a.fresh); err != nil {
		return nil, err
	}
	if n.Content != a.id {
		return nil, &retargetError{to: n.Content}
	}
	hadCRC, crc, sums, grants := n.Has(record.FlagCRC), n.CRC, n.Object.Checksums, n.Grants
	for i := range a.c.Extents {
		e := &a.c.Extents[i]
		it := content.Item{Off: a.off + e.Off, Len: e.Len, Blob: content.Blob{Seq: e.Seq, Size: e.BlobSize, CRC: e.BlobCRC}, BlobOff: e.BlobOff}
		if e.Kind == record.ExtentInline {
			it.Small = [][]byte{e.Data}
		}
		if _, _, err := o.contents.StoreItem(t, n, &it, it.Off, content.Bounds{Extents: extents.PerTxn(a.fs.kv)}); err != nil {
			return nil, err
		}
	}
	n.Size += a.c.Size
	o.contents.Changed(n)
	n.SetGrants(grants)
	n.CRC = cluster.CombineCRC64(crc, a.c.CRC, a.c.Size)
	n.Set(record.FlagCRC, hadCRC || a.off == 0)
	n.Object.Checksums = a.combined(sums)
	n.Mode = perm.DropSetID(n.Mode)
	if err := xattr.DropCapability(t, n); err != nil {
		return nil, err
	}
	n.Mtime, n.CtimeNS = TimeNS(o.nowNS), o.nowNS
	return n, record.PutInode(t, n)
}

// combined are the checksums of the whole that follow from those of its beginning
// and of what was added.
func (a *appending) combined(before []Checksum) (all []Checksum) {
	for _, s := range a.sums {
		if a.off == 0 {
			all = append(all, s)
			continue
		}
		i := slices.IndexFunc(before, wholeOf(s.Algorithm))
		if i < 0 || !checksum.Combines(s.Algorithm) {
			continue
		}
		v := checksum.Combine(s.Algorithm, before[i].Value, s.Value, a.c.Size)
		all = append(all, Checksum{Algorithm: s.Algorithm, Value: v})
	}
	return all
}

// retarget copies the blobs to another content.
func (a *appending) retarget(ctx context.Context, to ContentID) error {
	fs := a.fs
	old := content.Written{ID: a.c.ID, Extents: slices.Clone(a.c.Extents)}
	fs.contents.Pins.Pin(to)
	for i := range a.c.Extents {
		e := &a.c.Extents[i]
		if e.Kind != record.ExtentBlob {
			continue
		}
		id, err := fs.copyBlob(ctx, e.BlobID(a.id), e.BlobSize, to)
		if err != nil {
			fs.contents.Pins.Unpin(to)
			return err
		}
		e.Seq = id.Seq
	}
	fs.contents.Discard(ctx, &old)
	fs.contents.Pins.Unpin(a.id)
	a.id, a.c.ID = to, to
	return nil
}
