package nfsserver

import (
	"context"
	"io"
	"net"
	"testing"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// FuzzArguments sends arbitrary arguments to every procedure of both
// programs. With a handle asked for, they begin with a valid one, so that
// what stands behind it is reached.
func FuzzArguments(f *testing.F) {
	s := newSite(f)
	c := s.mount("/", 0)
	_, file, _ := c.create(c.root, "file", createGuarded, set{})
	handles := [][]byte{nil, c.root, file}
	conn := s.fuzzConn()
	for proc := range byte(len(nfsNames)) {
		f.Add(proc, byte(1), []byte{0, 0, 0, 1, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		f.Add(proc, byte(2), make([]byte, 64))
	}
	f.Add(byte(0x80|mountMnt), byte(0), []byte{0, 0, 0, 1, '/', 0, 0, 0})
	f.Fuzz(func(t *testing.T, proc, with byte, args []byte) {
		prog := uint32(ProgramNFS)
		if proc&0x80 != 0 {
			prog = ProgramMount
		}
		var w xdr.Writer
		if h := handles[int(with)%len(handles)]; h != nil {
			w.Opaque(h)
		}
		w.B = append(w.B, args...)
		c.t = t
		rec := c.record(prog, 3, uint32(proc&0x7f), w.B)
		if _, err := conn.Write(rec); err != nil {
			t.Fatal(err)
		}
		var head [4 + 6*4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		r := xdr.NewReader(head[:])
		n := int(r.Uint32()&^(1<<31)) - 24
		if xid := r.Uint32(); xid != c.xid {
			t.Fatal("another call's reply")
		}
		r.Fixed(16)
		if accept := r.Uint32(); accept == rpc.SystemErr {
			t.Fatalf("procedure %d answers SYSTEM_ERR", proc)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(n)); err != nil {
			t.Fatal(err)
		}
	})
}

// fuzzConn connects without deadlines.
func (s *site) fuzzConn() net.Conn {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}
