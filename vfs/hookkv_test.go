package vfs

import (
	"context"

	"ogw/cluster"
)

// hookKV calls the test between the steps of an operation. Set before use.
type hookKV struct {
	cluster.KV
	viewed func()                                    // after each View
	peek   func(fn func(cluster.Reader) error) error // in place of Peek
	reader func(cluster.Reader) cluster.Reader       // what Views see
}

// hook puts a hookKV into a namespace.
func hook(fs *FS) *hookKV {
	h := &hookKV{KV: fs.kv}
	fs.kv = h
	return h
}

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

func (h *hookKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	if h.peek != nil {
		return h.peek(fn)
	}
	return h.KV.Peek(ctx, fn)
}
