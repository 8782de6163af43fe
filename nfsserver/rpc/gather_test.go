package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ogw/nfsserver/xdr"
	"ogw/vfs/clients/pipe"

	"golang.org/x/sys/unix"
)

// pages answers n bytes of the file at an offset; where n is a multiple of 10 after it put
// something into a pipe and failed, so that they are copied.
func (h *harness) pages(_ context.Context, c *Call, r *Reply) error {
	n, off := int(c.Args.Uint32()), int64(c.Args.Uint32())
	put := func(w int) (int64, error) {
		at := off
		k, err := unix.Splice(int(h.file.Fd()), &at, w, nil, n, unix.SPLICE_F_NONBLOCK)
		if n%10 == 0 {
			err = errors.Join(err, errors.New("no"))
		}
		return k, err
	}
	k := c.Pages(put)
	if k > 0 {
		h.paged.Add(1)
	} else {
		b := GetBuffer(n)
		k, _ = h.file.ReadAt(b.B, off)
		b.B = b.B[:k]
		r.Payload(b)
	}
	r.Uint32(uint32(k))
	return nil
}

// ofPages starts a server that has a file of size bytes.
func ofPages(t *testing.T, cfg Config, size int) (h *harness, data []byte) {
	t.Helper()
	data = make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	h = start(t, cfg)
	h.file = f
	t.Cleanup(func() { f.Close() })
	return h, data
}

// Replies with pages come whole and padded, among others of all kinds, and give their
// pipes back.
func TestPages(t *testing.T) {
	h, data := ofPages(t, Config{}, pipe.Bytes+5)
	c := h.dial()
	want := map[uint32][]byte{}
	xid := uint32(100)
	for range 20 {
		for _, p := range []struct{ n, off uint32 }{{1 << 16, 0}, {pipe.Bytes, 4096}, {99_999, 4096}, {100_000, 0}, {3, 8192}, {70_001, 1}} {
			xid++
			var a xdr.Writer
			a.Uint32(p.n)
			a.Uint32(p.off)
			c.send(call(xid, 10, a.B...))
			part := data[p.off:min(int(p.off+p.n), len(data))]
			var w xdr.Writer
			w.Uint32(uint32(len(part)))
			w.B = append(w.B, part...)
			w.B = append(w.B, padding[:xdr.Pad(len(part))]...)
			want[xid] = w.B
			c.send(call(xid+10_000, 0)) // a small one
			want[xid+10_000] = nil
			if len(want) < 12 {
				continue
			}
			for range len(want) {
				b, err := c.read()
				if err != nil {
					t.Fatal(err)
				}
				id := binary.BigEndian.Uint32(b)
				if w, ok := want[id]; !ok || !bytes.Equal(b[headerBytes-4:], w) {
					t.Fatalf("reply %d of %d bytes, want %d: %v", id, len(b)-headerBytes+4, len(w), ok)
				}
				delete(want, id)
			}
		}
	}
	if n := h.paged.Load(); n != 20*5 {
		t.Errorf("%d replies were of pages", n)
	}
	h.hasPipes()
}

// hasPipes waits until no call has a pipe any more.
func (h *harness) hasPipes() {
	h.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		var got []*pipe.Pipe
		for range maxPipes {
			if p := h.srv.pipes.Get(); p != nil {
				got = append(got, p)
			}
		}
		for _, p := range got {
			h.srv.pipes.Put(p)
		}
		if len(got) == maxPipes {
			return
		}
		if time.Since(begin) > 10*time.Second {
			h.t.Fatalf("%d of %d pipes are there", len(got), maxPipes)
		}
	}
}

// A client that takes nothing, or is gone, gives its pipes back, and others get replies.
func TestPagesNotTaken(t *testing.T) {
	h, _ := ofPages(t, Config{StallTimeout: 300 * time.Millisecond}, pipe.Bytes)
	ask := func(c *client, calls int) {
		for i := range calls {
			var a xdr.Writer
			a.Uint32(pipe.Bytes)
			a.Uint32(0)
			c.send(call(uint32(i), 10, a.B...))
		}
	}
	slow, gone := h.dialFrom("127.0.0.2"), h.dialFrom("127.0.0.3")
	ask(slow, 14)
	ask(gone, 14)
	gone.Close()
	c := h.dial()
	ask(c, 1)
	if b, err := c.read(); err != nil || len(b) != headerBytes+pipe.Bytes {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	h.hasPipes()
}
