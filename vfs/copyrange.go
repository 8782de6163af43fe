package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

// copyBufferBytes is what a copy that cannot be made by reference moves at a
// time.
const copyBufferBytes = 1 << 20

// CopyRange copies n bytes from src to f by reference where it can
// (copy_file_range, FICLONERANGE). It returns how many were copied, less
// than n at the end of src. Ranges of one file must not overlap (ErrInvalid).
func (f *File) CopyRange(ctx context.Context, off int64, src *File, srcOff, n int64) (int64, error) {
	if f.flags&OpenWrite == 0 || src.flags&OpenRead == 0 || f.closed.Load() || src.closed.Load() {
		return 0, ErrBadHandle
	}
	if off < 0 || srcOff < 0 || n < 0 {
		return 0, fmt.Errorf("%w: range %d, %d+%d", ErrInvalid, off, srcOff, n)
	}
	if f.of == src.of && max(off-srcOff, srcOff-off) < n {
		return 0, fmt.Errorf("%w: ranges of one file overlap", ErrInvalid)
	}
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	a, _, err := src.Refresh(ctx)
	if err != nil {
		return 0, err
	}
	n = min(n, max(0, a.Size-srcOff))
	if n == 0 {
		return 0, nil
	}
	if off > MaxFileBytes-n {
		return 0, ErrFileTooLarge
	}
	f.markUnsaved()
	if n <= int64(f.fs.cfg.InlineBytes) {
		n, err = f.copyBytes(ctx, off, src, srcOff, n)
	} else {
		n, err = f.copyByReference(ctx, off, src, srcOff, n)
	}
	return n, f.stable(ctx, err)
}

// copyBytes copies through the write buffers.
func (f *File) copyBytes(ctx context.Context, off int64, src *File, srcOff, n int64) (done int64, err error) {
	buf := make([]byte, min(n, copyBufferBytes))
	for done < n {
		k, err := src.of.read(ctx, buf[:min(n-done, int64(len(buf)))], srcOff+done)
		if k == 0 {
			if done > 0 {
				err = nil
			}
			return done, err
		}
		if _, _, err := f.write(ctx, oneWrite{p: buf[:k], off: off + done, killPriv: f.killPriv}); err != nil {
			return done, err
		}
		done += int64(k)
	}
	return done, nil
}

// copyByReference makes room first, in as many transactions as it takes, and
// then names the source's bytes.
func (f *File) copyByReference(ctx context.Context, off int64, src *File, srcOff, n int64) (int64, error) {
	fs := f.fs
	if err := fs.flushInode(ctx, src.of.ino); err != nil {
		return 0, err
	}
	for {
		// For the source's own new content, if it is f's too: another one each
		// time, since after the first f has it.
		own, err := fs.ids.Take(ctx)
		if err != nil {
			return 0, err
		}
		var copied, cleared int64
		err = f.changeEnd(ctx, func(t cluster.Txn, o *op, dst *record.Inode, id ContentID) (err error) {
			if err := perm.FlagsOf(dst).CheckWrite(off, dst.Size); err != nil {
				return err
			}
			copied, cleared, err = o.contents.CopyRange(t, dst, content.RangeCopy{
				From: src.of.ino, Range: content.Range{Off: srcOff, Len: n}, To: off, New: id, Own: ContentID(own)})
			return err
		})
		if errors.Is(err, ErrTooLarge) || errors.Is(err, content.ErrDetach) {
			return f.copyBytes(ctx, off, src, srcOff, n)
		}
		if err != nil {
			return 0, err
		}
		if copied > 0 || cleared == 0 {
			return copied, nil
		}
	}
}
