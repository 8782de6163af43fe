package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
)

const (
	// maxCompleteAttempts bounds how often Complete begins anew because a
	// part came in or another Complete ran meanwhile.
	maxCompleteAttempts = 16
)

// CompleteUpload publishes the parts as one object, atomically; it is
// metadata only. Checks order, sizes, ETags and checksums of the parts. Asked again after it succeeded, it succeeds while the object
// still has that content (S3 CompleteMultipartUpload).
func (fs *FS) CompleteUpload(ctx context.Context, name UploadName, o CompleteOptions) (ObjectInfo, error) {
	ctx = fs.objectCtx(ctx, name.ObjectName)
	k, err := parseUploadName(name)
	if err != nil {
		return ObjectInfo{}, err
	}
	if err := objects.CheckParts(o.Parts); err != nil {
		return ObjectInfo{}, err
	}
	c := completion{fs: fs, name: &k, want: o.Parts, cond: &o.Cond, sum: o.Checksum}
	for range maxCompleteAttempts {
		info, err := c.run(ctx)
		switch {
		case errors.Is(err, errUploadChanged):
			continue
		case errors.Is(err, ErrNoSuchUpload):
			if info, ok := c.already(ctx); ok {
				return info, nil
			}
		}
		return info, err
	}
	return ObjectInfo{}, fmt.Errorf("upload %q keeps changing: %w", name.ID, ErrConflict)
}

// errUploadChanged: the upload is not as the staging of its extents began.
var errUploadChanged = fmt.Errorf("upload changed: %w", ErrConflict)

// completion is one CompleteUpload.
type completion struct {
	fs   *FS
	name *keypath.UploadKey
	want []CompletePart
	cond *Preconditions
	sum  *Checksum
}

// run is one attempt: it looks at the parts, then publishes in one
// transaction, or stages the extents before if they are many.
func (c *completion) run(ctx context.Context) (ObjectInfo, error) {
	u, stored, err := c.measure(ctx)
	if err != nil {
		return ObjectInfo{}, err
	}
	p := publication{key: &c.name.Object, cond: c.cond, meta: &u.Meta, owner: NewCred(u.UID, u.GID), mode: u.Mode, keep: true,
		accepted: true, keepOwner: u.By.KeepsOwner}
	if !objects.NoConditions(c.cond) {
		if err := c.fs.precheck(ctx, &p); err != nil {
			return ObjectInfo{}, err
		}
	}
	// Each extent takes a write, and another if it is a reference. What an
	// earlier staging left must be cleared first.
	if u.Stage == 0 && stored <= extents.PerTxn(c.fs.kv)/2 {
		p.make = func(t cluster.Txn, o *op, _ *keypath.Place) (*record.Inode, error) { return nil, c.assemble(t, o, &p) }
		return c.fs.publish(ctx, &p)
	}
	a, stage, err := c.stage(ctx)
	if err != nil {
		return ObjectInfo{}, err
	}
	p.make = func(t cluster.Txn, o *op, _ *keypath.Place) (*record.Inode, error) {
		u, err := c.staged(t, stage)
		if err != nil {
			return nil, err
		}
		if err := c.fill(&p, a, nil); err != nil {
			return nil, err
		}
		return nil, o.endUpload(t, u)
	}
	return c.fs.publish(ctx, &p)
}

// measure checks all parts and counts their extents.
func (c *completion) measure(ctx context.Context) (u *record.Upload, stored int, err error) {
	err = c.fs.view(ctx, func(r cluster.Reader) (err error) {
		if u, err = c.fs.rights.Upload(ctx, r, c.name, ActWriteObject); err != nil {
			return err
		}
		a := objects.NewAssembly(u, c.want)
		stored = 0
		for done := false; !done; {
			var list []record.Extent
			if list, done, err = a.Read(r, extents.UnlimitedTxn); err != nil {
				return err
			}
			stored += len(list)
		}
		_, err = a.Object(c.sum)
		return err
	})
	return u, stored, err
}

// assemble does all in the transaction that publishes.
func (c *completion) assemble(t cluster.Txn, o *op, p *publication) error {
	u, err := c.fs.rights.Upload(o.ctx, t, c.name, ActWriteObject)
	if err != nil {
		return err
	}
	if u.Stage > 0 {
		return errUploadChanged // its extents must be cleared before
	}
	a := objects.NewAssembly(u, c.want)
	var all []record.Extent
	for done := false; !done; {
		var list []record.Extent
		if list, done, err = a.Read(t, extents.PerTxn(c.fs.kv)); err != nil {
			return err
		}
		all = append(all, list...)
	}
	if len(all) > extents.PerTxn(c.fs.kv) {
		return errUploadChanged // parts were replaced by longer ones
	}
	if err := c.fill(p, a, all); err != nil {
		return err
	}
	return o.endUpload(t, u)
}

// fill makes p publish what a assembled.
func (c *completion) fill(p *publication, a *objects.Assembly, list []record.Extent) error {
	var err error
	if p.object, err = a.Object(c.sum); err != nil {
		return err
	}
	p.content = &content.Written{ID: a.Upload.ID, Size: a.Size, Used: a.Used, CRC: a.CRC, NoCRC: a.NoCRC, Extents: list}
	p.refs = a.Refs
	if a.Size == 0 {
		p.content.ID = 0
	}
	return nil
}

// stage writes the extents in batches, each of which sees to it that the
// upload did not change since stage began.
func (c *completion) stage(ctx context.Context) (a *objects.Assembly, stage uint64, err error) {
	fs := c.fs
	// The transaction that publishes makes these durable too.
	relaxed := cluster.Relaxed(ctx)
	var u *record.Upload
	err = fs.update(relaxed, func(t cluster.Txn, o *op) error {
		if u, err = fs.rights.Upload(ctx, t, c.name, ActWriteObject); err != nil {
			return err
		}
		u.Stage++
		return t.Set(u.StoreKey(), u.Encode())
	})
	if err != nil {
		return nil, 0, err
	}
	for more := u.Stage > 1; more; {
		err := fs.update(relaxed, func(t cluster.Txn, o *op) error {
			if _, err := c.staged(t, u.Stage); err != nil {
				return err
			}
			more, err = clearExtents(t, u.ID, extents.PerTxn(fs.kv)/2)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	a = objects.NewAssembly(u, c.want)
	for done := false; !done; {
		var list []record.Extent
		err := fs.view(ctx, func(r cluster.Reader) (err error) {
			if _, err = c.staged(r, u.Stage); err == nil {
				list, done, err = a.Read(r, extents.PerTxn(fs.kv)/2)
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		if err := c.stageBatch(relaxed, u, list); err != nil {
			return nil, 0, err
		}
	}
	return a, u.Stage, nil
}

// stageBatch writes extents, in several transactions if a part has many.
func (c *completion) stageBatch(ctx context.Context, u *record.Upload, list []record.Extent) error {
	for size := extents.PerTxn(c.fs.kv) / 2; len(list) > 0; {
		n := min(size, len(list))
		err := c.fs.update(ctx, func(t cluster.Txn, o *op) error {
			if _, err := c.staged(t, u.Stage); err != nil {
				return err
			}
			return content.PutExtents(t, u.ID, list[:n])
		})
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// staged reads the upload, which must be as the staging began.
func (c *completion) staged(r cluster.Reader, stage uint64) (*record.Upload, error) {
	u, err := keypath.GetUpload(r, c.name)
	if err == nil && u.Stage != stage {
		err = errUploadChanged
	}
	return u, err
}

// clearExtents deletes up to limit extents that a staging wrote. The parts
// hold what they refer to.
func clearExtents(t cluster.Txn, upload ContentID, limit int) (more bool, err error) {
	var keys [][]byte
	prefix := record.ExtentPrefix(upload)
	o := cluster.ScanOptions{Limit: limit, KeysOnly: true}
	err = t.Scan(prefix, cluster.PrefixEnd(prefix), o, func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	for _, k := range keys {
		if err == nil {
			err = t.Delete(k)
		}
	}
	return len(keys) == limit, err
}

// already tells whether the object holds the content of the upload: then an
// earlier call succeeded, and only its answer was lost.
func (c *completion) already(ctx context.Context) (ObjectInfo, bool) {
	id, _, ok := keypath.ParseUploadID(c.name.ID)
	if !ok {
		return ObjectInfo{}, false
	}
	var info ObjectInfo
	err := c.fs.view(ctx, func(r cluster.Reader) error {
		n, err := c.fs.rights.Object(ctx, r, &c.name.Object, ActReadObject)
		if err != nil {
			return err
		}
		if n.Content != id || n.Object.NParts == 0 {
			return ErrNoSuchUpload
		}
		info, err = c.fs.objectInfo(r, c.name.Object.Key, n)
		info.Checksums = checksumsIn(n)
		return err
	})
	return info, err == nil
}
