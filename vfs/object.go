package vfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// Object operations name an object by bucket and key (ObjectName). Each checks
// the rights of the subject in its context (WithSubject; ErrAccess).

// Object is an open object: the bytes that it had when it was opened.
type Object struct {
	Info ObjectInfo
	r    *content.Reader
}

// ReadAt reads like io.ReaderAt. Large reads (1 MiB and more) are the fast ones.
func (o *Object) ReadAt(p []byte, off int64) (int, error) {
	if o.r == nil {
		return 0, fmt.Errorf("object %q: %w", o.Info.Key, ErrBadHandle)
	}
	return o.r.ReadAt(p, off)
}

// Splice puts up to n bytes at off into a pipe, whose end for writing is the file
// descriptor w, without copying them. It returns how many, at least one. After an
// error, which says nothing, the pipe is to be closed, and ReadAt to be asked.
func (o *Object) Splice(w int, off, n int64) (int64, error) {
	if o.r == nil {
		return 0, fmt.Errorf("object %q: %w", o.Info.Key, ErrBadHandle)
	}
	return o.r.Splice(w, off, n)
}

// Close releases the bytes.
func (o *Object) Close() error {
	if o.r == nil {
		return nil
	}
	return o.r.Close()
}

// GetObject opens an object. With ErrNotModified and ErrPrecondition the
// Object's Info is filled, and there is nothing to close (S3 GetObject).
func (fs *FS) GetObject(ctx context.Context, name ObjectName, o GetOptions) (*Object, error) {
	ctx = fs.objectCtx(ctx, name)
	g := getting{o: o}
	ob := &g.ob
	var err error
	if g.k, err = parseKey(name); err != nil {
		return nil, err
	}
	n, err := fs.readObject(ctx, &g.k, func(r cluster.Reader, n *record.Inode) (err error) {
		ob.r.Close() // of an earlier run
		ob.r, g.sums = nil, nil
		if ob.Info, err = fs.objectInfo(r, g.k.Key, n); err != nil {
			return err
		}
		if err := objects.CheckRead(&g.o.Cond, ob.Info.ETag, ob.Info.Modified); err != nil {
			return err
		}
		if ob.r, err = fs.contents.Open(ctx, r, n); g.o.computes(n, &ob.Info) {
			g.sums = ob.r
		}
		return err
	})
	if err == nil && g.o.Checksums {
		ob.Info.Checksums, err = fs.checksums(ctx, n, g.sums)
	}
	if err != nil {
		ob.Close()
		ob.r = nil
		if errors.Is(err, ErrNotModified) || errors.Is(err, ErrPrecondition) {
			return ob, err
		}
		return nil, err
	}
	return ob, nil
}

// getting is what GetObject keeps for its runs, in one piece.
type getting struct {
	o    GetOptions
	k    keypath.Key
	ob   Object
	sums *content.Reader // of ob, if a checksum is to be computed
}

// HeadObject returns what GetObject would, without the bytes.
func (fs *FS) HeadObject(ctx context.Context, name ObjectName, o GetOptions) (ObjectInfo, error) {
	ctx = fs.objectCtx(ctx, name)
	h := heading{o: o}
	var err error
	if h.k, err = parseKey(name); err != nil {
		return ObjectInfo{}, err
	}
	n, err := fs.readObject(ctx, &h.k, func(r cluster.Reader, n *record.Inode) (err error) {
		h.rd.Close() // of an earlier run
		h.rd = nil
		if h.info, err = fs.objectInfo(r, h.k.Key, n); err != nil {
			return err
		}
		if err := objects.CheckRead(&h.o.Cond, h.info.ETag, h.info.Modified); err != nil {
			return err
		}
		if h.o.computes(n, &h.info) {
			h.rd, err = fs.contents.Open(ctx, r, n)
		}
		return err
	})
	if h.rd != nil {
		defer h.rd.Close()
	}
	if err == nil && h.o.Checksums {
		h.info.Checksums, err = fs.checksums(ctx, n, h.rd)
	}
	if err != nil && !errors.Is(err, ErrNotModified) && !errors.Is(err, ErrPrecondition) {
		return ObjectInfo{}, err
	}
	return h.info, err
}

// heading is what HeadObject keeps for its runs, in one piece.
type heading struct {
	o    GetOptions
	k    keypath.Key
	info ObjectInfo
	rd   *content.Reader
}

// readObject calls fn with the inode of an object, in one snapshot that holds
// all that this process wrote to it. fn may be called again.
func (fs *FS) readObject(ctx context.Context, k *keypath.Key, fn func(r cluster.Reader, n *record.Inode) error) (*record.Inode, error) {
	var found struct { // in one piece
		n       *record.Inode
		flushed Ino
	}
	for {
		mark := fs.session.Open.Mark()
		err := fs.peek(ctx, func(r cluster.Reader) error {
			n, err := fs.rights.Object(ctx, r, k, ActReadObject)
			if found.n = n; err != nil {
				return err
			}
			if n.Ino != found.flushed && n.IsRegular() && (fs.opened(n.Ino) != nil || fs.session.Open.LeftSince(mark, n.Ino)) {
				return errUnflushed
			}
			return fn(r, n)
		})
		if !errors.Is(err, errUnflushed) {
			return found.n, err
		}
		if err := fs.flushInode(ctx, found.n.Ino); err != nil {
			return nil, err
		}
		found.flushed = found.n.Ino
	}
}

// computes reports whether the CRC64NVME that is asked for must be computed.
func (o *GetOptions) computes(n *record.Inode, info *ObjectInfo) bool {
	return o.Checksums && !n.Has(record.FlagCRC) && (o.StoredSums == nil || !o.StoredSums(info))
}

// checksums returns those stored with an object, and its CRC64NVME, which is
// computed from rd, if that is not nil, and remembered.
func (fs *FS) checksums(ctx context.Context, n *record.Inode, rd *content.Reader) ([]Checksum, error) {
	if rd != nil {
		crc, err := rd.Sum(ctx, func(damage error) error { return damage })
		if err != nil {
			return nil, err
		}
		n.CRC = crc
		n.Set(record.FlagCRC, true)
		fs.rememberCRC(ctx, n)
	}
	return checksumsIn(n), nil
}

// checksumsIn returns the checksums that the inode holds.
func checksumsIn(n *record.Inode) []Checksum {
	list := append([]Checksum(nil), n.Object.Checksums...)
	if n.Has(record.FlagCRC) {
		list = append(list, Checksum{Algorithm: ChecksumCRC64NVME, Value: checksum.CRC64Bytes(n.CRC)})
	}
	return list
}

// rememberCRC stores a computed checksum in the inode unless its content
// changed meanwhile. A failure only costs computing it again.
func (fs *FS) rememberCRC(ctx context.Context, n *record.Inode) {
	err := fs.update(cluster.Relaxed(ctx), func(t cluster.Txn, _ *op) error {
		now, err := record.GetInode(t, n.Ino)
		if err != nil {
			return err
		}
		if now.Has(record.FlagCRC) || now.Content != n.Content || now.Version != n.Version {
			return nil
		}
		now.CRC = n.CRC
		now.Set(record.FlagCRC, true)
		return record.PutInode(t, now)
	})
	if err != nil && !errors.Is(err, ErrStale) {
		fs.log.Debug("checksum of an object not remembered", "inode", uint64(n.Ino), "err", err)
	}
}

// SetObjectTags replaces the tags of an object, in the form of a URL's query, without
// touching content and ETag; "" removes them (S3 PutObjectTagging).
func (fs *FS) SetObjectTags(ctx context.Context, name ObjectName, query string) error {
	return fs.changeObject(ctx, ActWriteObject, name, func(_ *rights.Judge, n *record.Inode) error {
		n.Object.SetTags(query)
		return nil
	})
}

// changeObject changes what an object's inode holds beside its content, for who
// may do act.
func (fs *FS) changeObject(ctx context.Context, act Action, name ObjectName, change func(j *rights.Judge, n *record.Inode) error) error {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return err
	}
	err = fs.update(ctx, func(t cluster.Txn, o *op) error {
		j, n, err := fs.rights.JudgedObject(ctx, t, &k, act)
		if err != nil {
			return err
		}
		// It stands under other keys, too, whose bucket may be another's.
		if s := rights.SubjectOf(ctx); n.Nlink > 1 && !rights.MayAll(s) && !rights.Owns(s, n) {
			return fmt.Errorf("%q has other links and another owner: %w", name.Key, ErrAccess)
		}
		if err := perm.FlagsOf(n).CheckFree(); err != nil {
			return err
		}
		if err := change(&j, n); err != nil {
			return err
		}
		n.CtimeNS = o.nowNS
		o.feed.InodeChanged(n.Ino, false)
		return record.PutInode(t, n)
	})
	return fs.tooDeep(err, &k)
}

// modifiedAt is when the content of n changed last.
func modifiedAt(n *record.Inode) time.Time { return n.Mtime.Date() }
