package fusemount

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/vfs"
)

// Whatever requests do, one thread at a time reads, each request is answered once,
// and all threads end.
func TestTurns(t *testing.T) {
	const requests = 20_000
	var (
		tt       turns
		threads  sync.WaitGroup
		reading  atomic.Int32
		answered [requests + 1]atomic.Int32
		next     uint64 // guarded by the turn
	)
	tt.init(func(w *turn) {
		threads.Go(func() {
			defer tt.gone(w)
			for {
				if n := reading.Add(1); n != 1 {
					t.Errorf("%d threads read", n)
				}
				next++
				unique := next
				reading.Add(-1)
				if unique > requests {
					tt.stop()
					return
				}
				number := tt.begin(w, unique)
				switch rand.IntN(8) {
				case 0:
					tt.waits(w)
				case 1:
					tt.crowd(number)
				case 2:
					tt.requestWaits(unique)
				case 3:
					if rand.IntN(200) == 0 { // nobody reports it
						time.Sleep(3 * turnTime)
					}
				}
				answered[unique].Add(1)
				if !tt.end(w, number, func() bool { return rand.IntN(2) == 0 }) {
					return
				}
			}
		})
	})
	tt.first()
	<-tt.ended
	threads.Wait()
	for unique := range answered[1:] {
		if n := answered[unique+1].Load(); n != 1 {
			t.Fatalf("request %d of %d was answered %d times", unique+1, requests, n)
		}
	}
	if n := tt.busy.Load(); n != 0 {
		t.Errorf("%d threads are busy at the end", n)
	}
}

// slowFS answers a GETATTR of an odd node when it may, of an even one at once.
type slowFS struct {
	fuse.RawFileSystem
	begun chan uint64
	may   chan struct{}
}

func (f *slowFS) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, _ *fuse.AttrOut) fuse.Status {
	if in.NodeId%2 == 1 {
		f.begun <- in.NodeId
		select {
		case <-f.may:
		case <-cancel:
		}
	}
	return fuse.Status(unix.ESTALE)
}

// loopOf has a loop answer what is written to the socket that it returns.
func loopOf(t *testing.T, api fuse.RawFileSystem) (*loop, int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	raw := newRawFS(bg, namespaceOf(openFS(t)), Options{Logger: testLogger(t)}.withDefaults(true))
	raw.conn = &connection{raw: raw, set: new(Mounts)}
	p, err := newLoop(raw, pair[0], api, &fuse.MountOptions{})
	must(t, err)
	p.start()
	return p, pair[1]
}

func askAttr(t *testing.T, socket int, node uint64) {
	t.Helper()
	in := fuse.GetAttrIn{InHeader: header(node, vfs.Ino(node))}
	in.Length, in.Opcode = uint32(unsafe.Sizeof(in)), 3
	_, err := unix.Write(socket, unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in)))
	must(t, err)
}

// answerOf returns the request that is answered next.
func answerOf(t *testing.T, socket int) uint64 {
	t.Helper()
	b := make([]byte, fuseabi.OutHeaderSize+200)
	n, err := unix.Read(socket, b)
	if err != nil || n < fuseabi.OutHeaderSize {
		t.Fatalf("reading an answer: %d bytes, %v", n, err)
	}
	return (*fuse.OutHeader)(unsafe.Pointer(&b[0])).Unique
}

// Requests that nobody knew to wait do not stop others until all threads have one;
// what comes then is answered when one of them is.
func TestRequestsThatWait(t *testing.T) {
	slow := &slowFS{fuse.NewDefaultRawFileSystem(), make(chan uint64), make(chan struct{})}
	p, socket := loopOf(t, slow)
	for i := range uint64(maxLoopThreads - 1) {
		askAttr(t, socket, 2*i+1)
		<-slow.begun
		askAttr(t, socket, 2*i+2)
		if got := answerOf(t, socket); got != 2*i+2 {
			t.Fatalf("request %d was answered, not %d", got, 2*i+2)
		}
	}
	askAttr(t, socket, 2*maxLoopThreads+1)
	<-slow.begun
	askAttr(t, socket, 2*maxLoopThreads+2)
	slow.may <- struct{}{}
	answerOf(t, socket)
	if got := answerOf(t, socket); got != 2*maxLoopThreads+2 {
		t.Fatalf("request %d was answered, not the last one", got)
	}
	// The end of the connection interrupts what waits.
	unix.Close(socket)
	if !p.wait() {
		t.Error("it was left")
	}
	p.close()
}

// Requests that come one after the other, and wait for nothing, take one thread.
func TestOneThread(t *testing.T) {
	p, socket := loopOf(t, &slowFS{RawFileSystem: fuse.NewDefaultRawFileSystem()})
	const requests = 1000
	for i := range uint64(requests) {
		askAttr(t, socket, 2*i+2)
		answerOf(t, socket)
	}
	// On a busy machine some take long.
	p.turns.mu.Lock()
	if n := len(p.turns.all); n > 3 {
		t.Errorf("%d threads", n)
	}
	p.turns.mu.Unlock()
	unix.Close(socket)
	p.wait()
	p.close()
}
