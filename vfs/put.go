package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/xattr"
)

// PutObject stores body under the key, atomically and durably: readers see
// the old object or the new. MD5 and CRC64NVME are computed on the way,
// concurrently with writing. A key that ends in "/" is the directory's own
// content (S3 PutObject).
func (fs *FS) PutObject(ctx context.Context, name ObjectName, body io.Reader, o PutOptions) (ObjectInfo, error) {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return ObjectInfo{}, err
	}
	if err := fs.validateMeta(&o.Meta); err != nil {
		return ObjectInfo{}, err
	}
	p := publication{key: &k, cond: &o.Cond, meta: &o.Meta, owner: o.Owner, mode: o.Mode, mtimeNS: o.MtimeNS,
		bucket: o.Bucket}
	p.writer(rights.SubjectOf(ctx))
	// A large body is not worth reading for a request that cannot succeed;
	// one that fits a buffer costs less than to ask.
	if !objects.NoConditions(&o.Cond) || o.Size < 0 || o.Size > bodyhash.BufferBytes {
		if err := fs.precheck(ctx, &p); err != nil {
			return ObjectInfo{}, err
		}
	}
	v, err := fs.bodies.Receive(ctx, o.body(body, MaxObjectBytes))
	if err != nil {
		return ObjectInfo{}, err
	}
	defer v.Release()
	p.content = v.Content
	p.object = record.Object{Sum: v.Sum[:], Checksums: v.Checksums}
	return fs.publish(ctx, &p)
}

// publication is a content on its way to become an object.
type publication struct {
	key     *keypath.Key
	cond    *Preconditions
	meta    *ObjectMeta
	content *content.Written
	object  record.Object // sums, checksums and parts
	owner   *Cred         // nil: root
	mode    uint32        // of a new file; 0: the configured one
	mtimeNS int64         // 0: now
	// bucket, if not 0, is the only one that this goes into; precheck sets it.
	bucket    Ino
	heir      *record.Inode // the bucket, where it owns what is published; of one run
	keepOwner bool          // what is overwritten stays its owner's
	keepMode  bool          // and its mode stays the one that somebody chose
	existed   bool          // precheck found an object
	accepted  bool          // what meta brings was decided when an upload began
	remove    bool          // this is no publication but its opposite
	onlyEmpty bool          // of remove: a directory with entries is refused
	refs      bool          // the content's extents are stored already, and some are references
	keep      bool          // the content is not dropped when publishing fails
	// make, if set, completes the publication within the transaction, before
	// the inode of the target is read. If it returns an inode, that is the
	// target itself, which keeps its content.
	make func(t cluster.Txn, o *op, at *keypath.Place) (self *record.Inode, err error)
}

// precheck finds early what publish would find: no such bucket, no right, and
// preconditions that fail. From here on p goes into this bucket or nowhere. It
// flushes what this process wrote to the object,
// so that preconditions are about all that was acknowledged.
func (fs *FS) precheck(ctx context.Context, p *publication) error {
	for flushed := false; ; flushed = true {
		var open, bucket Ino // of the last run: p stays what it was for the next one
		var existed bool
		err := fs.peek(ctx, func(r cluster.Reader) error {
			at, err := keypath.Locate(r, p.key)
			if err != nil {
				return err
			}
			j := fs.rights.OnKey(ctx, r, p.key, &at)
			if open = 0; !flushed && !objects.NoConditions(p.cond) && at.Entry != nil && fs.opened(at.Entry.Ino) != nil {
				open = at.Entry.Ino
				return nil
			}
			old, err := checkTarget(&j, p, &at)
			bucket, existed = j.Bucket, old != nil && (!old.IsDir() || old.Has(record.FlagExplicit))
			return err
		})
		if err != nil {
			return err
		}
		if open == 0 {
			p.bucket, p.existed = bucket, existed
			return nil
		}
		if err := fs.flushInode(ctx, open); err != nil {
			return err
		}
	}
}

// MayPut reports early what PutObject would find, rights included, and whether
// there is an object. A PutObject with PutOptions.Bucket of in publishes in this
// bucket or nowhere.
func (fs *FS) MayPut(ctx context.Context, name ObjectName, cond Preconditions) (existed bool, in Ino, err error) {
	k, err := parseKey(name)
	if err != nil {
		return false, 0, err
	}
	p := publication{key: &k, cond: &cond}
	err = fs.precheck(ctx, &p)
	return p.existed, p.bucket, err
}

// publish makes p.content the object, or drops it.
func (fs *FS) publish(ctx context.Context, p *publication) (ObjectInfo, error) {
	var n *record.Inode
	err := fs.update(ctx, func(t cluster.Txn, o *op) (err error) {
		n, err = o.publish(t, p)
		return err
	})
	if errors.Is(err, ErrUnavailable) {
		// The outcome is unknown: the content must stay. If it is there, and
		// will be, all is well.
		if n = fs.published(cluster.Strict(ctx), p); n != nil {
			err = nil
		}
	} else if err != nil && !p.keep {
		fs.contents.Discard(ctx, p.content)
	}
	p.content.Published(!errors.Is(err, ErrUnavailable))
	if err != nil {
		return ObjectInfo{}, fs.tooDeep(err, p.key)
	}
	info := plainInfo(p.key.Key, n)
	info.Meta, info.Parts = *p.meta, n.Object.Parts
	info.Checksums = checksumsIn(n)
	return info, nil
}

// tooDeep makes ErrTooLarge of a change of a key ErrKeyTooLong where the directories on the
// way, read or made in the same transaction, are what was too much of it.
func (fs *FS) tooDeep(err error, k *keypath.Key) error {
	const perLevel = 2 // a new one is an inode and an entry
	if ops := fs.kv.Limits().Ops; ops > 0 && errors.Is(err, ErrTooLarge) && perLevel*len(k.Names) > ops/2 {
		return fmt.Errorf("%w: %d levels: %v", ErrKeyTooLong, len(k.Names), err) //nolint:errorlint // it is no ErrTooLarge
	}
	return err
}

// published returns the inode of the object if it holds p's content.
func (fs *FS) published(ctx context.Context, p *publication) *record.Inode {
	if p.content == nil || p.content.ID == 0 {
		return nil
	}
	var n *record.Inode
	err := fs.view(ctx, func(r cluster.Reader) (err error) {
		n, err = fs.rights.Object(WithSubject(ctx, &Subject{Admin: true}), r, p.key, ActReadObject) // what it wrote, it may know
		return err
	})
	if err != nil || n.Content != p.content.ID {
		return nil
	}
	return n
}

// publish makes p.content the object's and returns the inode, stored.
func (o *op) publish(t cluster.Txn, p *publication) (*record.Inode, error) {
	locate := keypath.Locate
	if o.fs.kv.Limits().Distant {
		locate = keypath.LocateBoth
	}
	at, err := locate(t, p.key)
	if err != nil {
		return nil, err
	}
	var self *record.Inode
	if p.make != nil {
		if self, err = p.make(t, o, &at); err != nil {
			return nil, err
		}
	}
	j := o.fs.rights.OnKey(o.ctx, t, p.key, &at)
	old, err := checkTarget(&j, p, &at)
	if err != nil {
		return nil, err
	}
	if p.heir, err = j.Heir(p.meta.Grants); err != nil {
		return nil, err
	}
	if self != nil {
		o.feed.InodeChanged(self.Ino, false)
		p.takeOver(self)
		return self, o.describe(t, p, self)
	}
	if p.key.Dir {
		return o.publishDir(t, p, &at, old)
	}
	if old != nil && old.IsRegular() && old.Nlink <= 1 {
		old.Mode = perm.DropSetID(old.Mode) // as every write by another does
		if err := xattr.DropCapability(t, old); err != nil {
			return nil, err
		}
		p.takeOver(old)
		return old, o.fillObject(t, p, old)
	}
	return o.publishFile(t, p, &at, old)
}

// writer sets what follows from who writes.
func (p *publication) writer(s *Subject) {
	p.keepOwner, p.keepMode = rights.KeepsOwner(s), s != nil && s.Local
	if p.owner == nil {
		p.owner = rights.CredOf(s)
	}
}

// maker owns what is made.
func (p *publication) maker() *Cred {
	if p.heir != nil {
		return NewCred(p.heir.UID, p.heir.GID)
	}
	return p.owner
}

// takeOver makes the file n that is overwritten the writer's, and its mode one
// that nobody chose: the last word wins. A local user writes as POSIX does.
func (p *publication) takeOver(n *record.Inode) {
	if n.IsDir() {
		return // its mode guards what is below it, which p does not replace
	}
	if !p.keepMode {
		n.Unchoose()
	}
	if !p.keepOwner || p.heir != nil {
		owner := p.maker()
		n.UID, n.GID = owner.UID(), owner.GID()
		n.Mode = perm.DropSetID(n.Mode) // as chown does
	}
}

// checkTarget checks the right to publish p and its preconditions, and returns
// the inode of the entry that p replaces, nil if there is none.
func checkTarget(j *rights.Judge, p *publication, at *keypath.Place) (old *record.Inode, err error) {
	if at.Entry != nil {
		if old, err = record.GetInode(j.R, at.Entry.Ino); err != nil {
			return nil, err
		}
	}
	switch {
	case p.remove:
		err = j.Remove(p.key, at, old)
	case p.accepted:
		err = j.Write(p.key, p.bucket, nil, at, old)
	case p.meta != nil:
		if err = j.TakesACL(p.meta.Grants); err != nil {
			break
		}
		fallthrough
	default:
		err = j.Write(p.key, p.bucket, p.meta, at, old)
	}
	if err == nil {
		err = checkFlags(j.R, p, at, old)
	}
	if err != nil {
		return nil, err
	}
	return old, checkConditions(j, p, at, old)
}

func checkConditions(j *rights.Judge, p *publication, at *keypath.Place, old *record.Inode) error {
	if objects.NoConditions(p.cond) {
		return nil
	}
	if old == nil || old.IsDir() && !old.Has(record.FlagExplicit) {
		if objects.OnlyAbsent(p.cond) {
			return nil
		}
		return j.Hide(objects.CheckAbsent(p.cond, p.key.NoSuchKey()))
	}
	if !objects.OnlyAbsent(p.cond) {
		// The answer describes the object: ETag by ETag, its content.
		if err := j.Grants(ActReadObject, old); err != nil {
			return err
		}
		if err := j.Mode(old, AccessRead); err != nil {
			return err
		}
	}
	// Of what is no object, such as a special file, no ETag is known, but it exists.
	etag, modified, size := ETag(""), modifiedAt(old), old.Size
	n, err := j.ObjectInode(p.key, at)
	if err == nil {
		etag, modified, size = objects.ETagOf(n), modifiedAt(n), n.Size
	} else if !errors.Is(err, ErrNoSuchKey) {
		return err
	}
	return objects.CheckChange(p.cond, etag, modified, size)
}

// checkFlags is checkTarget's part that goes by FileFlags.
func checkFlags(r cluster.Reader, p *publication, at *keypath.Place, old *record.Inode) error {
	d, err := rights.HeldFlags(r, at.Deepest())
	switch {
	case err != nil:
		return err
	case old == nil && p.remove:
		return nil
	case old == nil:
		return d.CheckWritable()
	case p.remove, !p.key.Dir && (!old.IsRegular() || old.Nlink > 1):
		return d.CheckTake(perm.FlagsOf(old))
	}
	return perm.FlagsOf(old).CheckFree()
}

// publishFile makes a new inode for the key; old, if any, loses a link.
func (o *op) publishFile(t cluster.Txn, p *publication, at *keypath.Place, old *record.Inode) (*record.Inode, error) {
	dir := at.Dir()
	var err error
	if len(at.Missing) > 0 {
		if dir, err = o.makeImplied(t, dir, at.Missing, p.maker()); err != nil {
			return nil, err
		}
	}
	id, err := o.newID()
	if err != nil {
		return nil, err
	}
	mode := p.mode & ModePermMask
	if p.mode == 0 {
		mode = o.fs.cfg.FileMode
	}
	n := o.newInode(id, ModeRegular|mode, p.maker())
	if p.keepOwner && p.heir == nil && old != nil && old.IsRegular() {
		n.UID, n.GID = old.UID, old.GID
	}
	n.Parent, n.Name = dir, p.key.Last()
	e := record.EntryOf(n)
	switch {
	case old != nil:
		if err = o.dropLink(t, old, dir, n.Name); err == nil {
			err = o.addEntryBeside(t, dir, e, false) // whether it is a pair does not change
		}
	case len(at.Missing) > 0:
		err = o.addEntryBeside(t, dir, e, false) // in a directory that is new
	default:
		err = o.addEntry(t, dir, e)
	}
	if err != nil {
		return nil, err
	}
	return n, o.fillObject(t, p, n)
}

// publishDir gives the directory of a key "x/" its own content and makes it
// explicit.
func (o *op) publishDir(t cluster.Txn, p *publication, at *keypath.Place, n *record.Inode) (*record.Inode, error) {
	if n == nil {
		names := append(at.Missing[:len(at.Missing):len(at.Missing)], p.key.Last())
		dir, err := o.makeImplied(t, at.Dir(), names, p.maker())
		if err != nil {
			return nil, err
		}
		if n, err = record.GetInode(t, dir); err != nil {
			return nil, err
		}
	}
	n.Set(record.FlagExplicit, true)
	return n, o.fillObject(t, p, n)
}

// fillObject gives n the content and the metadata of p, and stores it.
func (o *op) fillObject(t cluster.Txn, p *publication, n *record.Inode) error {
	if err := o.contents.Set(t, n, p.content); err != nil {
		return err
	}
	if p.refs {
		n.Set(record.FlagRefs, true)
	}
	return o.describe(t, p, n)
}

// describe gives n what the object part and the metadata of p say, and
// stores it.
func (o *op) describe(t cluster.Txn, p *publication, n *record.Inode) error {
	n.Object = p.object
	if err := o.setMeta(t, n, p.meta); err != nil {
		return err
	}
	if p.heir != nil {
		n.SetGrants(nil) // which said no more than that
	}
	n.CtimeNS, n.Mtime = o.nowNS, TimeNS(o.nowNS)
	if p.mtimeNS != 0 {
		n.Mtime = TimeNS(p.mtimeNS)
	}
	return record.PutInode(t, n)
}
