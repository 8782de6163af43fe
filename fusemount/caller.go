package fusemount

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// callerPause is how often the caller of a request that waits is looked at.
	callerPause = 50 * time.Millisecond
	// callerCost lengthens the pause by the number of requests that wait, so
	// that looking at all of them takes a few percent of a core at the most.
	callerCost = time.Millisecond
)

// callerWatch ends the wait of requests whose caller has a signal to take.
//
// The kernel reports that with INTERRUPT, but over io_uring that can get lost: a
// signal that comes between the moment in which a request is given to an entry
// and the one in which it counts as sent is reported to nobody. The caller then
// waits where not even SIGKILL ends it.
type callerWatch struct{ waiting atomic.Int64 }

// wait returns a context for a request of thread tid that waits: it ends with
// parent, with cancel, and when the caller has a signal to take. stop must be
// called when the wait is over.
func (w *callerWatch) wait(parent context.Context, cancel <-chan struct{}, tid uint32) (ctx context.Context, stop func()) {
	ctx, end := context.WithCancel(parent)
	go func() {
		defer end()
		pause := callerPause + time.Duration(w.waiting.Add(1))*callerCost
		defer w.waiting.Add(-1)
		for {
			if hasSignal(tid) {
				return
			}
			select {
			case <-cancel:
				return
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}()
	return ctx, end
}

// hasSignal reports whether the thread waits in the kernel with a signal that
// it will take. A thread of another process namespace (0), or one that may not
// be looked at, has none.
func hasSignal(tid uint32) bool {
	if tid == 0 {
		return false
	}
	b, err := os.ReadFile(statusFile(tid))
	if err != nil {
		return false
	}
	return signalPending(b, tid)
}

func statusFile(tid uint32) string { return fmt.Sprintf("/proc/%d/status", tid) }

// inGroup reports whether the caller of a request is in a group. The kernel names
// one group of his, and his thread the others. Who cannot be looked at, since he
// is in another process namespace, has no others.
func inGroup(h *fuse.InHeader, gid uint32) bool {
	if h.Gid == gid {
		return true
	}
	if h.Pid == 0 {
		return false
	}
	b, err := os.ReadFile(statusFile(h.Pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, "Groups:"); ok {
			return slices.Contains(strings.Fields(list), strconv.FormatUint(uint64(gid), 10))
		}
	}
	return false
}

// signalPending reads the file status of a thread (proc_pid_status(5)) that waits
// for us.
//
// The kernel gives what is pending for the whole process to one thread, the first
// if that takes it. Another one's call must not be answered EINTR: it has no signal
// of its own, and its program would see an error that does not exist. Of one that
// waits for the answer to a request, the state shows it: a signal that was given to it
// ended the wait that any ends (S), and it is in the one that a fatal signal ends (D).
// SIGKILL is pending for each thread.
func signalPending(status []byte, tid uint32) bool {
	var thread, process, blocked uint64
	given := false
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "State":
			given = given || strings.HasPrefix(value, "D")
		case "Tgid":
			given = given || value == strconv.FormatUint(uint64(tid), 10)
		case "SigPnd":
			thread = signalMask(value)
		case "ShdPnd":
			process = signalMask(value)
		case "SigBlk":
			blocked = signalMask(value)
		}
	}
	if given {
		thread |= process
	}
	return thread&^blocked != 0
}

// inOurUserNamespace is true of all threads where the kernel has one namespace only.
func inOurUserNamespace(tid uint32) bool {
	ours, err := os.Stat("/proc/self/ns/user")
	if err != nil {
		return os.IsNotExist(err)
	}
	its, err := os.Stat(fmt.Sprintf("/proc/%d/ns/user", tid))
	return err == nil && os.SameFile(ours, its)
}

// signalMask is a line's hexadecimal mask; none if it is malformed.
func signalMask(s string) uint64 {
	mask, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0
	}
	return mask
}

// hasCapability reports whether a thread has a capability (capabilities(7)) in
// effect, in the user namespace of this process: any user has all of them in one
// that he made. One that may not be looked at has none.
func hasCapability(tid uint32, capability int) bool {
	if tid == 0 || !inOurUserNamespace(tid) {
		return false
	}
	b, err := os.ReadFile(statusFile(tid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			return signalMask(strings.TrimSpace(mask))&(1<<capability) != 0
		}
	}
	return false
}
