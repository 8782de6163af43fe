package uploads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// maxCompleteAttempts bounds how often Complete begins anew because a part came in or
// another Complete ran concurrently.
const maxCompleteAttempts = 16

// completedTTL is how long Complete answers again, nanoseconds: longer than clients send
// a request again. One in 65,536 uploads that are completed meanwhile takes the place of the
// record (record.CompletedKey).
const completedTTL = int64(24 * time.Hour)

// CompleteOptions of Complete.
type CompleteOptions struct {
	Parts        []objects.CompletePart // in ascending order of their numbers
	MinPartBytes int64                  // that all parts but the last have at least; another is ErrPartTooSmall
	Cond         objects.Preconditions  // of what stands under the key
	Checksum     *checksum.Sum          // of the whole object, as the client states it; may be nil
	// Size of the object, and whether its checksum is one of those of its parts, as the client
	// states them, if not nil. Others are a *MismatchError.
	Size      *int64
	Composite *bool
}

// MismatchError says that an upload is not what a client states of it. It is fserr.ErrInvalid.
type MismatchError struct {
	Size bool // else Composite
}

func (e *MismatchError) Error() string {
	if e.Size {
		return "another size than stated"
	}
	return "another type of checksum than stated"
}

func (e *MismatchError) Unwrap() error { return fserr.ErrInvalid }

// checkType compares the type of the checksum.
func (o *CompleteOptions) checkType(u *record.Upload) error {
	if o.Composite != nil && *o.Composite != u.Composite {
		return &MismatchError{}
	}
	return nil
}

// Publisher makes what was assembled the object under the key.
type Publisher interface {
	// Begin is called with the upload before, and may return early the error of Publish.
	Begin(ctx context.Context, u *record.Upload) error
	// Publish calls assemble within its transaction, and again with the transaction.
	Publish(ctx context.Context, assemble func(t *Txn) (Assembled, error)) error
	// Answer is called instead, with what an earlier call made of the upload.
	Answer(c *record.Completed)
}

// Assembled is what an upload became.
type Assembled struct {
	Content *content.Written
	Object  record.Object // sums, checksums and parts
	Refs    bool          // some extents are references
}

// Complete publishes the parts as one object, atomically; it is metadata only. Checks
// order, sizes, ETags and checksums of the parts. Asked again after it succeeded, it
// gives the same answer for completedTTL, whatever became of the object.
func (s *Uploads) Complete(ctx context.Context, name *keypath.UploadKey, o *CompleteOptions, to Publisher) error {
	if err := objects.CheckParts(o.Parts); err != nil {
		return err
	}
	c := completion{s, name, o, to}
	for range maxCompleteAttempts {
		err := c.run(ctx)
		if errors.Is(err, errUploadChanged) {
			continue
		}
		if errors.Is(err, fserr.ErrNoSuchUpload) {
			return c.again(ctx, err)
		}
		return err
	}
	return fmt.Errorf("upload %q keeps changing: %w", name.ID, fserr.ErrConflict)
}

// again answers for an earlier call that succeeded, whose answer was lost; if there was none,
// it returns none.
func (c *completion) again(ctx context.Context, none error) error {
	var done *record.Completed
	err := c.Namespace.View(ctx, func(r cluster.Reader) (err error) {
		done, err = c.Rights.Completed(ctx, r, c.name)
		return err
	})
	if errors.Is(err, fserr.ErrNoSuchUpload) || err == nil && c.Rights.Now().UnixNano()-done.TimeNS >= completedTTL {
		return none
	}
	if err == nil {
		c.to.Answer(done)
	}
	return err
}

// errUploadChanged: the upload is not as the staging of its extents began.
var errUploadChanged = fmt.Errorf("upload changed: %w", fserr.ErrConflict)

// completion is one Complete.
type completion struct {
	*Uploads
	name *keypath.UploadKey
	o    *CompleteOptions
	to   Publisher
}

// run is one attempt: it looks at the parts, then publishes in one
// transaction, or stages the extents before if they are many.
func (c *completion) run(ctx context.Context) error {
	u, stored, err := c.measure(ctx)
	if err != nil {
		return err
	}
	if err := c.to.Begin(ctx, u); err != nil {
		return err
	}
	// Each extent takes a write, and another if it is a reference. What an
	// earlier staging left must be cleared first.
	if u.Stage == 0 && stored <= extents.PerTxn(c.KV)/2 {
		return c.to.Publish(ctx, func(t *Txn) (Assembled, error) { return c.assemble(ctx, t) })
	}
	a, stage, err := c.stage(ctx)
	if err != nil {
		return err
	}
	return c.to.Publish(ctx, func(t *Txn) (Assembled, error) {
		u, err := c.staged(t, stage)
		if err != nil {
			return Assembled{}, err
		}
		return c.finish(t, u, a, nil)
	})
}

// measure checks all parts and counts their extents.
func (c *completion) measure(ctx context.Context) (u *record.Upload, stored int, err error) {
	err = c.Namespace.View(ctx, func(r cluster.Reader) (err error) {
		if u, err = c.Rights.Upload(ctx, r, c.name, rights.ActWriteObject); err != nil {
			return err
		}
		if err := c.o.checkType(u); err != nil { // which may be why a part has not what is stated of it
			return err
		}
		a := objects.NewAssembly(u, c.o.Parts, c.o.MinPartBytes)
		stored = 0
		for done := false; !done; {
			var list []record.Extent
			if list, done, err = a.Read(r, extents.UnlimitedTxn); err != nil {
				return err
			}
			stored += len(list)
		}
		_, err = c.object(a)
		return err
	})
	return u, stored, err
}

// object returns what the parts make, if it is what the client states.
func (c *completion) object(a *objects.Assembly) (record.Object, error) {
	if c.o.Size != nil && *c.o.Size != a.Size {
		return record.Object{}, &MismatchError{Size: true}
	}
	return a.Object(c.o.Checksum)
}

// assemble does all in the transaction that publishes.
func (c *completion) assemble(ctx context.Context, t *Txn) (Assembled, error) {
	u, err := c.Rights.Upload(ctx, t, c.name, rights.ActWriteObject)
	if err != nil {
		return Assembled{}, err
	}
	if u.Stage > 0 {
		return Assembled{}, errUploadChanged // its extents must be cleared before
	}
	a := objects.NewAssembly(u, c.o.Parts, c.o.MinPartBytes)
	var all []record.Extent
	for done := false; !done; {
		var list []record.Extent
		if list, done, err = a.Read(t, extents.PerTxn(c.KV)); err != nil {
			return Assembled{}, err
		}
		all = append(all, list...)
	}
	if len(all) > extents.PerTxn(c.KV) {
		return Assembled{}, errUploadChanged // parts were replaced by longer ones
	}
	return c.finish(t, u, a, all)
}

// finish ends the upload, of which a became an object. Of its extents, those of list
// are not stored yet.
func (c *completion) finish(t *Txn, u *record.Upload, a *objects.Assembly, list []record.Extent) (Assembled, error) {
	object, err := c.object(a)
	if err != nil {
		return Assembled{}, err
	}
	w := &content.Written{ID: a.Upload.ID, Size: a.Size, Used: a.Used, CRC: a.CRC, NoCRC: a.NoCRC, Extents: list}
	if a.Size == 0 {
		w.ID = 0
	}
	if err := t.Set(record.CompletedKey(u.ID), completed(t, u, a, &object).Encode()); err != nil {
		return Assembled{}, err
	}
	return Assembled{w, object, a.Refs}, end(t, u)
}

// completed is what is kept of u, of which a became object. Nothing removes it but the
// record that takes its place.
func completed(t *Txn, u *record.Upload, a *objects.Assembly, object *record.Object) *record.Completed {
	c := &record.Completed{Digest: u.Digest(), TimeNS: t.NowNS, UID: u.UID, User: u.By.User, Size: a.Size, Sum: [16]byte(object.Sum),
		NParts: object.NParts, Checksums: slices.Clone(object.Checksums)}
	if !a.NoCRC {
		c.Checksums = append(c.Checksums, checksum.Sum{Algorithm: checksum.CRC64NVME, Value: checksum.CRC64Bytes(a.CRC)})
	}
	return c
}

// stage writes the extents in batches, each of which sees to it that the
// upload did not change since stage began.
func (c *completion) stage(ctx context.Context) (a *objects.Assembly, stage uint64, err error) {
	// The transaction that publishes makes these durable too.
	relaxed := cluster.Relaxed(ctx)
	var u *record.Upload
	err = c.Namespace.Update(relaxed, func(t *Txn) error {
		if u, err = c.Rights.Upload(ctx, t, c.name, rights.ActWriteObject); err != nil {
			return err
		}
		u.Stage++
		return t.Set(u.StoreKey(), u.Encode())
	})
	if err != nil {
		return nil, 0, err
	}
	for more := u.Stage > 1; more; {
		err := c.Namespace.Update(relaxed, func(t *Txn) error {
			if _, err := c.staged(t, u.Stage); err != nil {
				return err
			}
			more, err = clearExtents(t, u.ID, extents.PerTxn(c.KV)/2)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	a = objects.NewAssembly(u, c.o.Parts, c.o.MinPartBytes)
	for done := false; !done; {
		var list []record.Extent
		err := c.Namespace.View(ctx, func(r cluster.Reader) (err error) {
			if _, err = c.staged(r, u.Stage); err == nil {
				list, done, err = a.Read(r, extents.PerTxn(c.KV)/2)
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
	for size := extents.PerTxn(c.KV) / 2; len(list) > 0; {
		n := min(size, len(list))
		err := c.Namespace.Update(ctx, func(t *Txn) error {
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
func clearExtents(t cluster.Txn, upload record.ContentID, limit int) (more bool, err error) {
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
