package fusemount

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSignalPending(t *testing.T) {
	in := func(state, tgid, thread, process, blocked string) []byte {
		return fmt.Appendf(nil, "Name:\tflock\nState:\t%s\nTgid:\t%s\nPid:\t7\nSigQ:\t1/9\nSigPnd:\t%s\nShdPnd:\t%s\nSigBlk:\t%s\nSigIgn:\t0000000000000000\n", state, tgid, thread, process, blocked)
	}
	status := func(tgid, thread, process, blocked string) []byte {
		return in("S (sleeping)", tgid, thread, process, blocked)
	}
	const none, usr1, kill = "0000000000000000", "0000000000000200", "0000000000000100"
	for _, c := range []struct {
		name   string
		status []byte
		want   bool
	}{
		{"none", status("7", none, none, none), false},
		{"of the thread", status("5", usr1, none, none), true},
		{"of the process, first thread", status("7", none, usr1, none), true},
		{"of the process, another thread", status("5", none, usr1, none), false},
		{"of the process, given to another thread", in("D (disk sleep)", "5", none, usr1, none), true},
		{"of the process, blocked by another thread", in("D (disk sleep)", "5", none, usr1, usr1), false},
		{"blocked", status("7", usr1, usr1, usr1), false},
		{"one of two blocked", status("7", usr1, kill, usr1), true},
		{"killed, another thread", status("5", kill, kill, none), true},
		{"malformed", []byte("SigPnd:\tx\nShdPnd\n\nSigBlk:"), false},
	} {
		if got := signalPending(c.status, 7); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHasSignal looks at a thread of this process that has a signal which it
// blocks, and then no longer.
func TestHasSignal(t *testing.T) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGUSR2)
	defer signal.Stop(ignored)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	var blocked, before unix.Sigset_t
	blocked.Val[0] = 1 << (syscall.SIGUSR2 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Tgkill(os.Getpid(), tid, syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	if hasSignal(uint32(tid)) {
		t.Error("a blocked signal counts")
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		t.Fatal(err)
	}
	if hasSignal(uint32(tid)) || hasSignal(0) || hasSignal(1<<30) {
		t.Error("a signal after it was taken, or of a thread that does not exist")
	}
}

// TestHasCapability looks at processes that have all capabilities, here or in a
// namespace that any user can make.
func TestHasCapability(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for name, c := range map[string]struct {
		attr syscall.SysProcAttr
		want bool
	}{
		"root": {syscall.SysProcAttr{}, true},
		"user": {syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}, false},
		"root of a namespace": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, Credential: &syscall.Credential{NoSetGroups: true},
			UidMappings: []syscall.SysProcIDMap{{HostID: 1000, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: 1000, Size: 1}}}, false},
	} {
		cmd := exec.Command("cat")
		cmd.SysProcAttr = &c.attr
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := hasCapability(uint32(cmd.Process.Pid), unix.CAP_LINUX_IMMUTABLE); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hasCapability(0, unix.CAP_LINUX_IMMUTABLE) || hasCapability(1<<30, unix.CAP_LINUX_IMMUTABLE) {
		t.Error("of a thread that does not exist")
	}
}

// TestCallerWatch ends a wait by each of its three ends.
func TestCallerWatch(t *testing.T) {
	var w callerWatch
	cancel := make(chan struct{})
	ctx, stop := w.wait(t.Context(), cancel, uint32(os.Getpid()))
	defer stop()
	close(cancel)
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("the wait does not end with its request's")
	}
	ctx, stop = w.wait(t.Context(), nil, uint32(os.Getpid()))
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	stop()
	<-ctx.Done()
}
