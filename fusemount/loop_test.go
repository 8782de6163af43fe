package fusemount

import (
	"testing"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/notifier"
)

// lateFS answers GETATTR when it may.
type lateFS struct {
	fuse.RawFileSystem
	begun, may chan struct{}
}

func (f *lateFS) GetAttr(<-chan struct{}, *fuse.GetAttrIn, *fuse.AttrOut) fuse.Status {
	close(f.begun)
	<-f.may
	return fuse.Status(unix.ESHUTDOWN)
}

// To forget many inodes takes long; of few, nobody else is woken for it, beside others either.
func TestMayWaitForget(t *testing.T) {
	for _, beside := range []bool{false, true} {
		p := &loop{f: &rawFS{beside: beside}}
		for n, want := range map[int]bool{fuseabi.InHeaderSize + 24: false, largeBytes: true} {
			in := make([]byte, n)
			(*fuse.InHeader)(unsafe.Pointer(&in[0])).Opcode = fuseabi.OpBatchForget
			if got := p.mayWait(in); got != want {
				t.Errorf("%d bytes, beside others %v: %v", n, beside, got)
			}
		}
	}
}

// The process that notifies the kernel may be asked for the first time while the connection ends.
func TestFirstNotificationAtTheEnd(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	must(t, err)
	raw := newRawFS(bg, namespaceOf(openFS(t)), Options{Logger: testLogger(t)}.withDefaults(true))
	raw.conn = &connection{raw: raw, set: new(Mounts)}
	p, err := newLoop(raw, fd, fuse.NewDefaultRawFileSystem(), &fuse.MountOptions{})
	must(t, err)
	ends := func() bool { // close has begun
		if !p.life.TryRLock() {
			return true
		}
		defer p.life.RUnlock()
		return p.closed
	}
	started := make(chan struct{})
	p.apart.start = func() (*notifier.Client, error) {
		close(started)
		for !ends() {
			time.Sleep(time.Millisecond)
		}
		return p.startNotifier()
	}
	told := make(chan fuse.Status, 1)
	go func() { told <- p.apart.notify(notifyInvalInode, invalInode(1, 0, 0)) }()
	<-started
	inTime(t, "the end of the connection", p.close)
	inTime(t, "the notification", func() {
		if st := <-told; st != fuse.ENODEV {
			t.Errorf("it returns %v", st)
		}
	})
}

// A server that stops does not answer what it could not do in time that it stops,
// if the kernel asks the next server again.
func TestLeaveWithRequests(t *testing.T) {
	for name, resends := range map[string]bool{"sent again": true, "before Linux 6.9": false} {
		t.Run(name, func(t *testing.T) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			must(t, err)
			defer unix.Close(pair[1])
			raw := newRawFS(bg, namespaceOf(openFS(t)), Options{Logger: testLogger(t)}.withDefaults(true))
			raw.conn = &connection{raw: raw, set: new(Mounts)}
			late := &lateFS{fuse.NewDefaultRawFileSystem(), make(chan struct{}), make(chan struct{})}
			p, err := newLoop(raw, pair[0], late, &fuse.MountOptions{})
			must(t, err)
			p.leaving, p.resends = 10*time.Millisecond, resends
			p.start()
			in := fuse.GetAttrIn{InHeader: header(7, 1)}
			in.Length, in.Opcode = uint32(unsafe.Sizeof(in)), 3
			_, err = unix.Write(pair[1], unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in)))
			must(t, err)
			<-late.begun
			if left, complete := p.leave(); !left || complete {
				t.Errorf("left %v, complete %v", left, complete)
			}
			close(late.may)
			p.running.Wait()
			b := make([]byte, fuseabi.OutHeaderSize+200)
			n, err := unix.Read(pair[1], b)
			if answered := err == nil && n > 0; answered == resends {
				t.Errorf("answered: %v (%d, %v)", answered, n, err)
			}
			p.close()
		})
	}
}
