package nfsserver

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/fusemount"
)

// TestLocksOfFUSEAndNFS locks one file through a real mount and over the
// wire.
func TestLocksOfFUSEAndNFS(t *testing.T) {
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("needs /dev/fuse: ", err)
	} else {
		f.Close()
	}
	c := newLocker(t, "127.0.0.2", 0)
	s := lockSite(t, mem.NewDisk(), c.port, 0)
	dir := t.TempDir()
	m, err := fusemount.Mount(s.fs, dir, fusemount.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unmounted := false
	unmount := func() {
		if !unmounted {
			unmounted = true
			err := m.Unmount()
			for end := time.Now().Add(lockWait); errors.Is(err, syscall.EBUSY) && time.Now().Before(end); err = m.Unmount() {
				time.Sleep(20 * time.Millisecond) // the kernel still releases the file
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	c.at(s)
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fcntl := func(cmd int, typ int16, start, length int64) (syscall.Flock_t, error) {
		for {
			l := syscall.Flock_t{Type: typ, Start: start, Len: length}
			err := syscall.FcntlFlock(f.Fd(), cmd, &l)
			if !errors.Is(err, syscall.EINTR) { // the runtime's own signals
				return l, err
			}
		}
	}

	c.want("NFS locks", isGranted, ask{proc: nlmLock, svid: 1, start: 10, length: 10})
	if _, err := fcntl(syscall.F_SETLK, syscall.F_RDLCK, 19, 5); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("FUSE over NFS: %v", err)
	}
	if l, err := fcntl(syscall.F_GETLK, syscall.F_RDLCK, 0, 0); err != nil || l.Type != syscall.F_WRLCK || l.Start != 10 || l.Len != 10 {
		t.Errorf("F_GETLK: %+v %v", l, err)
	}
	if _, err := fcntl(syscall.F_SETLK, syscall.F_WRLCK, 20, 5); err != nil {
		t.Errorf("beside it: %v", err)
	}
	c.want("NFS over FUSE", isBlocked, ask{proc: nlmLock, svid: 2, start: 20, length: 1, block: true})

	// Each waits for the other's lock, one after the other.
	if _, err := fcntl(syscall.F_SETLK, syscall.F_UNLCK, 20, 5); err != nil {
		t.Fatal(err)
	}
	c.wantGrant("FUSE gave it up", 2)
	got := make(chan error, 1)
	go func() {
		_, err := fcntl(syscall.F_SETLKW, syscall.F_WRLCK, 20, 1)
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("FUSE got what NFS holds: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	c.want("NFS gives it up", isGranted, ask{proc: nlmUnlock, svid: 2, start: 20, length: 1})
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(lockWait):
		t.Fatal("FUSE did not get it")
	}

	// A client that reboots, and a mount that ends, free what they hold.
	c.notify(c.name, 3)
	eventually(t, "NFS's first lock is free", func() bool {
		_, err := fcntl(syscall.F_SETLK, syscall.F_WRLCK, 10, 10)
		return err == nil
	})
	c.want("held by FUSE", isDenied, ask{proc: nlmLock, svid: 1, start: 10, length: 1})
	f.Close()
	unmount()
	c.want("free with the mount's end", isGranted, ask{proc: nlmLock, svid: 1})
}
