package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// AllocMode of Allocate.
type AllocMode uint32

const (
	AllocKeepSize  AllocMode = 1 << iota // FALLOC_FL_KEEP_SIZE
	AllocPunchHole                       // FALLOC_FL_PUNCH_HOLE
	AllocZeroRange                       // FALLOC_FL_ZERO_RANGE
)

// Allocate is fallocate(2). Space cannot be reserved in a store of immutable
// blobs, so plain allocation sets the size; holes and zeros remove extents.
// ErrNoSpace if the store has less room than an allocation asks for.
func (f *File) Allocate(ctx context.Context, mode AllocMode, off, length int64) error {
	if f.flags&OpenWrite == 0 || f.closed.Load() {
		return ErrBadHandle
	}
	if off < 0 || length <= 0 {
		return fmt.Errorf("%w: range %d+%d", ErrInvalid, off, length)
	}
	if off > MaxFileBytes-length {
		return ErrFileTooLarge
	}
	punch, zero := mode&AllocPunchHole != 0, mode&AllocZeroRange != 0
	if punch && (zero || mode&AllocKeepSize == 0) || mode&^(AllocKeepSize|AllocPunchHole|AllocZeroRange) != 0 {
		return fmt.Errorf("%w: mode %#x", ErrNotSupported, uint32(mode))
	}
	f.markUnsaved()
	return f.stable(ctx, f.allocate(ctx, mode, off, length))
}

func (f *File) allocate(ctx context.Context, mode AllocMode, off, length int64) error {
	punch, zero := mode&AllocPunchHole != 0, mode&AllocZeroRange != 0
	if punch || zero {
		if err := f.clear(ctx, off, off+length); err != nil {
			return err
		}
	}
	if !punch && !zero {
		if err := f.roomFor(ctx, length); err != nil {
			return err
		}
	}
	if mode&AllocKeepSize != 0 {
		return nil
	}
	return f.changeEnd(ctx, func(t cluster.Txn, o *op, n *record.Inode, id ContentID) error {
		if n.Size >= off+length {
			return nil
		}
		return o.contents.Truncate(t, n, off+length, id)
	})
}

// roomFor fails if the store could not take so many bytes beside those that the
// file has.
func (f *File) roomFor(ctx context.Context, length int64) error {
	s, err := f.fs.StatFS(ctx)
	if err != nil || length <= s.FreeBytes {
		return err
	}
	a, err := f.Attr(ctx)
	if err == nil && length-a.Used > s.FreeBytes {
		err = fmt.Errorf("%w: %d bytes are free, %d were to be allocated", ErrNoSpace, s.FreeBytes, length)
	}
	return err
}

// clear makes a hole of [from, to), in as many transactions as it takes.
func (f *File) clear(ctx context.Context, from, to int64) error {
	for from < to {
		var done int64
		err := f.change(ctx, func(t cluster.Txn, o *op, n *record.Inode, id ContentID) (err error) {
			if err := perm.FlagsOf(n).CheckFree(); err != nil {
				return err
			}
			done, err = o.contents.Clear(t, n, from, to, id)
			return err
		})
		if err != nil {
			return err
		}
		from = done
	}
	return nil
}

// SeekData returns the first offset at or behind off that holds data;
// SeekHole the first that lies in a hole, the end of the file being one.
// ErrNoData behind the end.
func (f *File) SeekData(ctx context.Context, off int64) (int64, error) { return f.seek(ctx, off, true) }

// SeekHole: see SeekData.
func (f *File) SeekHole(ctx context.Context, off int64) (int64, error) {
	return f.seek(ctx, off, false)
}

func (f *File) seek(ctx context.Context, off int64, data bool) (int64, error) {
	if f.closed.Load() {
		return 0, ErrBadHandle
	}
	if off < 0 {
		return 0, ErrNoData
	}
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	of := f.of
	for attempt := 1; ; attempt++ {
		at, gen, err := of.trySeek(ctx, off, data)
		if err == nil || errors.Is(err, ErrNoData) || attempt == maxReadAttempts || ctx.Err() != nil || !of.again(gen, err) {
			return at, err
		}
	}
}

// trySeek walks the pieces and the stored segments side by side.
func (of *openFile) trySeek(ctx context.Context, off int64, data bool) (at int64, gen uint64, err error) {
	if err := of.rlock(ctx); err != nil {
		return 0, noSnapshot, err
	}
	snap, size := of.snap, of.size()
	var dirty [][2]int64
	for i := of.pieces.find(off); i < len(of.pieces); i++ {
		dirty = append(dirty, [2]int64{of.pieces[i].off, of.pieces[i].end()})
	}
	snap.refs.Add(1)
	of.mu.RUnlock()
	defer snap.release()
	if off >= size {
		return 0, snap.gen, ErrNoData
	}
	for at = off; at < size; {
		for len(dirty) > 0 && dirty[0][1] <= at {
			dirty = dirty[1:]
		}
		from, to, err := snap.reader.DataAt(ctx, at)
		if err != nil {
			return 0, snap.gen, err
		}
		if len(dirty) > 0 && dirty[0][0] <= max(at, from) {
			from, to = dirty[0][0], dirty[0][1]
		}
		switch {
		case data && from >= size:
			return 0, snap.gen, ErrNoData
		case data:
			return max(at, from), snap.gen, nil
		case from > at:
			return at, snap.gen, nil
		}
		at = to
	}
	return size, snap.gen, nil // a hole is wanted, and the end is one
}
