package nfsserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"ogw/cluster/local"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// benchSite is a server over the embedded engine.
func benchSite(b *testing.B) *site {
	b.Helper()
	clu, err := local.Open(context.Background(), local.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	return openSiteOver(b, nil, clu, vfs.Config{}, everyone)
}

// pipeline keeps depth calls in flight on one connection.
func pipeline(b *testing.B, c *client, proc uint32, depth int, args func(i int) *xdr.Writer) {
	b.Helper()
	window := make(chan struct{}, depth)
	br := bufio.NewReaderSize(c.conn, 256<<10)
	b.ResetTimer()
	b.StartTimer() // an earlier pipeline stopped it
	go func() {
		bw := bufio.NewWriterSize(c.conn, 32<<10)
		for i := range b.N {
			select {
			case window <- struct{}{}:
			default:
				bw.Flush()
				window <- struct{}{}
			}
			bw.Write(c.record(ProgramNFS, 3, proc, args(i).B))
		}
		bw.Flush()
	}()
	var head [32]byte
	for range b.N {
		if _, err := io.ReadFull(br, head[:]); err != nil {
			b.Fatal(err)
		}
		if st := Status(binary.BigEndian.Uint32(head[28:])); st != OK {
			b.Fatal(st)
		}
		if _, err := br.Discard(int(binary.BigEndian.Uint32(head[:])&^(1<<31)) - 28); err != nil {
			b.Fatal(err)
		}
		<-window
	}
	b.StopTimer()
}

func BenchmarkGetattr(b *testing.B) {
	c := benchSite(b).mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	pipeline(b, c, procGetattr, 16, func(int) *xdr.Writer { w := &xdr.Writer{}; w.Opaque(f); return w })
}

func BenchmarkLookup(b *testing.B) {
	c := benchSite(b).mount("/", 0)
	c.create(c.root, "f", createGuarded, set{})
	pipeline(b, c, procLookup, 16, func(int) *xdr.Writer { return diropArgs(c.root, "f") })
}

// lookupsOf returns a function that makes the next LOOKUP of files in a directory as the
// server does between receiving and sending, where somebody is told of refusals.
func lookupsOf(t testing.TB, s *site, files int) func() {
	s.srv.done = func(*Record) {}
	c := s.mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	args := make([][]byte, files)
	for at, i := range rand.New(rand.NewPCG(1, 2)).Perm(files) {
		c.nfs(procCreate, createArgs(d, i))
		args[at] = diropArgs(d, fmt.Sprintf("file%07d", i)).B
	}
	handle := s.srv.nfsProgram().Procs[procLookup].Handle
	call := rpc.Call{Remote: netip.MustParseAddrPort("127.0.0.1:700"), Cred: rpc.Cred{Flavor: rpc.AuthUnix}}
	var reply rpc.Reply
	next := 0
	return func() {
		call.Args = xdr.NewReader(args[next])
		next = (next + 1) % files
		reply.B = reply.B[:0]
		if err := handle(context.Background(), &call, &reply); err != nil || reply.Status != 0 {
			t.Fatal(err, reply.Status)
		}
	}
}

// BenchmarkLookupCall is a LOOKUP without the connection, of any of many files.
func BenchmarkLookupCall(b *testing.B) {
	const files = 10_000
	lookup := lookupsOf(b, benchSite(b), files)
	for range 2 * files {
		lookup()
	}
	b.ReportAllocs()
	for b.Loop() {
		lookup()
	}
}

// TestLookupAllocations: around what the namespace takes of the heap for a lookup, the
// server takes the name.
func TestLookupAllocations(t *testing.T) {
	s := newSite(t)
	lookup := lookupsOf(t, s, 1)
	d, err := s.fs.Lookup(context.Background(), vfs.Root, vfs.RootIno, "d")
	if err != nil {
		t.Fatal(err)
	}
	const runs = 500
	own := testing.AllocsPerRun(runs, func() { s.fs.Lookup(context.Background(), vfs.Root, d.Ino, "file0000000") })
	if n := testing.AllocsPerRun(runs, lookup); n > own+1 {
		t.Errorf("%v allocations, want at most one more than the %v of the namespace", n, own)
	}
}

func createArgs(dir []byte, i int) *xdr.Writer {
	w := diropArgs(dir, fmt.Sprintf("file%07d", i))
	w.Uint32(createGuarded)
	set{mode: ptr(uint32(0o644))}.put(w)
	return w
}

func BenchmarkCreate(b *testing.B) {
	c := benchSite(b).mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	pipeline(b, c, procCreate, 16, func(i int) *xdr.Writer { return createArgs(d, i) })
}

func BenchmarkRemove(b *testing.B) {
	c := benchSite(b).mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	pipeline(b, c, procCreate, 64, func(i int) *xdr.Writer { return createArgs(d, i) })
	pipeline(b, c, procRemove, 16, func(i int) *xdr.Writer { return diropArgs(d, fmt.Sprintf("file%07d", i)) })
}

func BenchmarkReaddirplus(b *testing.B) {
	for _, bytes := range []uint32{8 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dK", bytes>>10), func(b *testing.B) { benchReaddirplus(b, bytes) })
	}
}

func benchReaddirplus(b *testing.B, bytes uint32) {
	c := benchSite(b).mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	const n = 10_000
	for i := range n {
		c.nfs(procCreate, createArgs(d, i))
	}
	b.ResetTimer()
	for range b.N {
		if got := len(c.list(d, bytes, true)); got != n {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "entries/s")
}

const benchFile = 64 << 20

func BenchmarkWrite1M(b *testing.B) {
	c := benchSite(b).mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	data := randomBytes(maxTransfer)
	b.SetBytes(maxTransfer)
	pipeline(b, c, procWrite, 8, func(i int) *xdr.Writer {
		return writeArgs(f, uint64(i)*maxTransfer, unstable, data)
	})
	c.must("commit", firstOf(c.commit(f)))
}

func benchRead(b *testing.B, depth, size int) {
	c := benchSite(b).mount("/", 0)
	_, f, _ := c.create(c.root, "f", createGuarded, set{})
	data := randomBytes(maxTransfer)
	for off := 0; off < benchFile; off += maxTransfer {
		c.must("write", firstOf(c.write(f, uint64(off), unstable, data)))
	}
	c.must("commit", firstOf(c.commit(f)))
	b.SetBytes(int64(size))
	pipeline(b, c, procRead, depth, func(i int) *xdr.Writer {
		return readArgs(f, uint64(i*7919%(benchFile/size)*size), uint32(size))
	})
}

func BenchmarkRead1M(b *testing.B) { benchRead(b, 8, maxTransfer) }
func BenchmarkRead4K(b *testing.B) { benchRead(b, 16, 4096) }
