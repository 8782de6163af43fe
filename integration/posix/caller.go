package posix

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// caller is a thread with the identity, umask and working directory of its
// own. Linux keeps all of them for each thread; only libraries make them
// those of the process.
type caller struct {
	work chan func()
	done chan bool // fn ran to its end
	err  error     // it could not become what was asked
}

// Users of the suite. None owns anything but what a case gives it.
const (
	userA  = 1001
	userB  = 1002
	groupA = 1001
	groupB = 1002
	groupS = 1005 // supplementary
)

func startCaller(uid, gid int, groups []uint32) *caller {
	c := &caller{work: make(chan func()), done: make(chan bool)}
	go c.serve(uid, gid, groups)
	<-c.done
	return c
}

func (c *caller) serve(uid, gid int, groups []uint32) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	c.err = become(uid, gid, groups)
	c.done <- true
	for fn := range c.work {
		if !c.call(fn) {
			return
		}
	}
}

// call reports false for fn that ended its goroutine, as t.FailNow does.
func (c *caller) call(fn func()) (ok bool) {
	defer func() { c.done <- ok }()
	fn()
	return true
}

// become changes the calling thread.
func become(uid, gid int, groups []uint32) error {
	var p unsafe.Pointer
	if len(groups) > 0 {
		p = unsafe.Pointer(&groups[0])
	}
	for _, c := range []struct {
		name    string
		nr      uintptr
		a, b, c uintptr
	}{
		{"unshare", unix.SYS_UNSHARE, unix.CLONE_FS, 0, 0},
		{"setgroups", unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0},
		{"setresgid", unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{"setresuid", unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, e := unix.RawSyscall(c.nr, c.a, c.b, c.c); e != 0 {
			return fmt.Errorf("%s: %w", c.name, e)
		}
	}
	return nil
}

// as runs fn as another user.
func as(t *T, uid, gid int, groups []uint32, fn func()) {
	t.Helper()
	name := fmt.Sprint(uid, gid, groups)
	c := t.callers[name]
	if c == nil {
		c = startCaller(uid, gid, groups)
		t.callers[name] = c
	}
	if c.err != nil {
		t.Fatalf("becoming uid %d: %v", uid, c.err)
	}
	c.work <- fn
	if !<-c.done {
		delete(t.callers, name)
		t.FailNow()
	}
}

// asUser runs fn as a plain user.
func asUser(t *T, fn func()) { t.Helper(); as(t, userA, groupA, nil, fn) }

func (t *T) stopCallers() {
	for _, c := range t.callers {
		close(c.work)
	}
}
