package vfs

import (
	"context"

	"ogw/cluster"
)

// hookKV calls the test between the steps of an operation. Set before use.
type hookKV struct {
	cluster.KV
	viewed  func()                                    // after each View
	peeked  func()                                    // after each Peek
	updated func()                                    // after each Update
	commits func()                                    // before each attempt to commit
	peek    func(fn func(cluster.Reader) error) error // in place of Peek
	reader  func(cluster.Reader) cluster.Reader       // what Views see
}

// hook puts a hookKV into a namespace.
func hook(fs *FS) *hookKV {
	h := &hookKV{KV: fs.kv}
	setKV(fs, h)
	return h
}

// setKV has a namespace use another store of pairs.
func setKV(fs *FS, kv cluster.KV) { fs.kv, fs.quarantine.KV, fs.contents.KV = kv, kv, kv }

func (h *hookKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	err := h.KV.View(ctx, func(r cluster.Reader) error {
		if h.reader != nil {
			r = h.reader(r)
		}
		return fn(r)
	})
	if h.viewed != nil {
		h.viewed()
	}
	return err
}

func (h *hookKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	err := h.KV.Update(ctx, func(t cluster.Txn) error {
		err := fn(t)
		if err == nil && h.commits != nil {
			h.commits()
		}
		return err
	})
	if h.updated != nil {
		h.updated()
	}
	return err
}

func (h *hookKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if h.peek != nil {
		return h.peek(fn)
	}
	err := h.KV.Peek(ctx, fn)
	if h.peeked != nil {
		h.peeked()
	}
	return err
}

// hookBlobs verifies through the test.
type hookBlobs struct {
	cluster.Blobs
	verified func(id cluster.BlobID, err error) error
}

func (h *hookBlobs) Verify(ctx context.Context, id cluster.BlobID) error {
	return h.verified(id, cluster.VerifyBlob(ctx, h.Blobs, id))
}
