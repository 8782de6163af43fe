package pipe

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// file returns one of n bytes, and what puts those from off on into a pipe.
func file(t *testing.T, n int) (data []byte, from func(off int64) func(w int) (int64, error)) {
	t.Helper()
	data = make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return data, func(off int64) func(w int) (int64, error) {
		return func(w int) (int64, error) {
			return unix.Splice(int(f.Fd()), &off, w, nil, Bytes, unix.SPLICE_F_NONBLOCK)
		}
	}
}

// connected returns both ends of a connection, and the socket of the first.
func connected(t *testing.T) (a, b *net.TCPConn, socket syscall.RawConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(); in.Close() })
	a, b = in.(*net.TCPConn), out.(*net.TCPConn)
	if socket, err = a.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	return a, b, socket
}

// What was put into a pipe comes out of a socket, a part of it by Read before.
func TestPipe(t *testing.T) {
	data, from := file(t, Bytes+99)
	pool := NewPool(1)
	a, b, socket := connected(t)
	for _, off := range []int64{0, 4096, Bytes} {
		p := pool.Get()
		n, err := p.Fill(from(off))
		if err != nil || p.Len() != n || n != min(Bytes, len(data)-int(off)) {
			t.Fatalf("from %d: %d bytes, %v", off, n, err)
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(p, got[:10]); err != nil {
			t.Fatal(err)
		}
		go func() {
			if sent, err := p.Send(socket); sent != n-10 || err != nil || p.Len() != 0 {
				t.Errorf("%d bytes were sent, %v", sent, err)
			}
			pool.Put(p)
			a.Write([]byte{1})
		}()
		if _, err := io.ReadFull(b, got[10:]); err != nil || !bytes.Equal(got, data[off:][:n]) {
			t.Fatalf("from %d: %v, or other bytes", off, err)
		}
		if _, err := b.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that takes nothing is left at its deadline, with the rest in the pipe.
func TestPipeStalls(t *testing.T) {
	_, from := file(t, Bytes)
	pool := NewPool(1)
	a, _, socket := connected(t)
	sent := 0
	for range 100 {
		p := pool.Get()
		n, err := p.Fill(from(0))
		if err != nil {
			t.Fatal(err)
		}
		a.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		k, err := p.Send(socket)
		sent += k
		left := p.Len()
		pool.Put(p)
		if errors.Is(err, os.ErrDeadlineExceeded) && k+left == n && left > 0 {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%d bytes were taken, and nobody reads", sent)
}

// A pool has so many pipes, and none with anything in it.
func TestPool(t *testing.T) {
	_, from := file(t, 100)
	pool := NewPool(2)
	one, two := pool.Get(), pool.Get()
	if one == nil || two == nil || pool.Get() != nil {
		t.Fatal("not two pipes")
	}
	two.Fill(from(0))
	pool.Put(two)
	failed := errors.New("failed")
	if n, err := one.Fill(func(w int) (int64, error) { // puts something, and fails
		_, err := from(0)(w)
		return 0, errors.Join(failed, err)
	}); n != 0 || !errors.Is(err, failed) {
		t.Errorf("%d bytes, %v", n, err)
	}
	pool.Put(one)
	pool.Put(nil)
	if n := len(pool.idle); n != 0 {
		t.Errorf("%d pipes with something in them are kept", n)
	}
	if one = pool.Get(); one == nil || one.Len() != 0 || !one.empty() {
		t.Fatal("no empty pipe")
	}
	pool.Put(one)
	if again := pool.Get(); again != one {
		t.Error("an empty pipe was not kept")
	}
}
