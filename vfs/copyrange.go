package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
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
	if f.of == src.of && srcOff < off+n && off < srcOff+n {
		return 0, fmt.Errorf("%w: ranges of one file overlap", ErrInvalid)
	}
	a, err := src.Attr(ctx)
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
		return f.copyBytes(ctx, off, src, srcOff, n)
	}
	return f.copyByReference(ctx, off, src, srcOff, n)
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
		if _, _, err := f.write(ctx, buf[:k], off+done, false, f.killPriv); err != nil {
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
	if err := fs.settle(ctx, src.of.ino); err != nil {
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
		err = f.change(ctx, func(t cluster.Txn, o *op, dst *record.Inode, id ContentID) (err error) {
			if err := fileFlagsOf(dst).checkWrite(off, dst.Size); err != nil {
				return err
			}
			copied, cleared, err = o.copyRange(t, dst, off, src.of.ino, srcOff, n, id, ContentID(own))
			return err
		})
		if errors.Is(err, ErrTooLarge) || errors.Is(err, errDetach) {
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

// copyRange is one transaction of copyByReference. If the room that it needs
// holds too many extents, it clears some and returns how far, with copied 0.
func (o *op) copyRange(t cluster.Txn, dst *record.Inode, off int64, from Ino, srcOff, n int64, id, own ContentID) (copied, cleared int64, err error) {
	src := dst
	if from != dst.Ino {
		if src, err = record.GetInode(t, from); err != nil {
			return 0, 0, err
		}
	}
	if n = min(n, src.Size-srcOff); n <= 0 {
		return 0, 0, nil
	}
	if src == dst && dst.Content != 0 {
		// Its bytes become those of a content that both ranges refer to.
		if err := o.share(t, dst); err != nil {
			return 0, 0, err
		}
		source := *dst
		if err := t.Set(record.RefKey(dst.Content, own), []byte{}); err != nil { // keeps it while dst moves on
			return 0, 0, err
		}
		if err := o.makeWritable(t, dst, own); err != nil {
			return 0, 0, err
		}
		src = &source
	} else if err := o.makeWritable(t, dst, id); err != nil {
		return 0, 0, err
	}
	oldSize := dst.Size
	done, _, err := o.cutRange(t, dst, off, off+n, max(o.fs.cutLimit()/2, 1), nil)
	if err != nil {
		return 0, 0, err
	}
	dst.CRC = 0
	dst.Set(record.FlagCRC, false)
	o.contentChanged(dst)
	// The hold on what the source was ends if nothing of it is left in dst.
	release := func() error {
		if src == dst || from != dst.Ino || src.Content == 0 {
			return nil
		}
		return o.releaseIfUnnamed(t, dst.Content, src.Content)
	}
	if done < off+n {
		return 0, done, release()
	}
	list, err := o.refExtents(t, src, dst.Content, srcOff, n, off)
	if err != nil {
		return 0, 0, err
	}
	if err := putExtents(t, dst.Content, list); err != nil {
		return 0, 0, err
	}
	for i := range list {
		dst.Used += list[i].Len
	}
	dst.Set(record.FlagRefs, dst.Has(record.FlagRefs) || extents.HasRefs(list))
	dst.Size = max(oldSize, off+n)
	return n, 0, release()
}
