package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ns "ogw/vfs"
)

// The whole stack against a failing disk: in a run of random operations, one
// call fails, or all of a kind from one on. The clients get errors of the
// contract; what they were promised is there when the store is opened again,
// after a restart and after a power cut; and while the fault lasts nobody
// reads wrong bytes.

const (
	// stackFaultRuns is how many runs each fault gets; OGW_FAULT_RUNS sets
	// another number.
	stackFaultRuns = 10
	// stackFaultOps is how many operations a client tries in one run.
	stackFaultOps = 100
	// stackFullTime is when a full disk has room again: commits under way
	// wait for it.
	stackFullTime = 200 * time.Millisecond
	// stackFaultTime is when a run counts as hanging.
	stackFaultTime = 3 * time.Minute
)

// stackFault fails calls of some kinds.
type stackFault struct {
	name   string
	kinds  []fsCallKind
	err    error
	sticky bool
	short  bool // half of the bytes are read or written before
}

var stackFaults = []stackFault{
	{"read EIO", []fsCallKind{callRead, callOpen}, syscall.EIO, false, false},
	{"reads EIO", []fsCallKind{callRead}, syscall.EIO, true, false},
	{"short read", []fsCallKind{callRead}, syscall.EIO, false, true},
	{"write EIO", []fsCallKind{callWrite}, syscall.EIO, false, false},
	{"write ENOSPC", []fsCallKind{callWrite, callExtend, callCreate}, syscall.ENOSPC, false, false},
	{"disk full", []fsCallKind{callWrite, callExtend, callCreate, callMkdir}, syscall.ENOSPC, true, true},
	{"short write", []fsCallKind{callWrite}, syscall.EIO, false, true},
	{"sync EIO", []fsCallKind{callSync}, syscall.EIO, false, false},
	{"syncs EIO", []fsCallKind{callSync}, syscall.EIO, true, false},
	{"rename EIO", []fsCallKind{callRename}, syscall.EIO, false, false},
	{"create EIO", []fsCallKind{callCreate}, syscall.EIO, false, false},
	{"remove EIO", []fsCallKind{callRemove}, syscall.EIO, true, false},
	{"read-only", []fsCallKind{callWrite, callCreate, callRename, callRemove, callMkdir, callExtend}, syscall.EROFS, true, false},
}

// faultErrors are what a client may get from a failing disk.
var faultErrors = []error{ns.ErrIO, ns.ErrNoSpace, ns.ErrReadOnly, ns.ErrUnavailable, ns.ErrCorrupt}

func isFault(err error) bool {
	return slices.ContainsFunc(faultErrors, func(e error) bool { return errors.Is(err, e) })
}

// faultRun is one run.
type faultRun struct {
	stackFault
	w     *stackWorld
	at    int64 // the call that fails
	calls atomic.Int64
	on    atomic.Bool
	hit   atomic.Pointer[string]
}

func (r *faultRun) before(c *fsCall) (int, error) {
	if !r.on.Load() || !slices.Contains(r.kinds, c.kind) {
		return c.bytes, nil
	}
	n := r.calls.Add(1)
	if n != r.at && !(r.sticky && n > r.at) {
		return c.bytes, nil
	}
	what := fmt.Sprintf("%s of %s", c.kind, c.path)
	if r.hit.CompareAndSwap(nil, &what) && r.err == syscall.ENOSPC {
		time.AfterFunc(stackFullTime, func() { r.on.Store(false) })
	}
	if r.short {
		return c.bytes / 2, r.err
	}
	return 0, r.err
}

// work runs the operations of all clients, one after the other: then the run
// depends on little but its seed.
func (r *faultRun) work() error {
	r.on.Store(true)
	ended := make(map[*stackClient]bool)
	for range stackFaultOps {
		for _, c := range r.w.clients {
			if ended[c] {
				continue
			}
			if err := c.step(); err != nil && (r.hit.Load() == nil || !isFault(err)) {
				return fmt.Errorf("%s: %w", c.bucket, err)
			}
			// A state that could not be looked at is looked at later.
			ended[c] = len(c.states) <= c.begun
		}
	}
	r.on.Store(false)
	return nil
}

// lastLook looks at what the last operations left, now that the disk is well.
// A commit that is visible but will never be durable may be in the way.
func (r *faultRun) lastLook() error {
	for _, c := range r.w.clients {
		for len(c.states) <= c.begun {
			if err := c.look(); err != nil {
				return err
			}
		}
	}
	return nil
}

// expects is what was acknowledged to the clients.
func (r *faultRun) expects() []expected {
	var list []expected
	for _, c := range r.w.clients {
		list = append(list, expected{c: c, floor: c.floor, ceil: c.begun, open: c.open,
			states: c.states[c.floor : c.begun+1], log: c.last})
		e := &list[len(list)-1]
		e.loose = make(map[int]bool)
		for k := c.floor + 1; k <= c.begun; k++ {
			e.loose[k-c.floor] = c.loose[k]
			e.unknown = append(e.unknown, c.unknown[k]...)
		}
	}
	return list
}

func runStackFault(f stackFault, seed uint64) (hit string, err error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	w, err := newStackWorld(seed, 0, nil)
	if err != nil {
		return "", err
	}
	r := &faultRun{stackFault: f, w: w, at: 1 + rng.Int64N(120)}
	if !slices.Contains(f.kinds, callWrite) && !slices.Contains(f.kinds, callSync) {
		r.at = 1 + rng.Int64N(6) // the others are rare
	}
	w.fs.before = r.before
	defer func() {
		if p := r.hit.Load(); p != nil {
			hit = *p
		}
		if err != nil {
			err = fmt.Errorf("call %d, %s: %w", r.at, hit, err)
		}
	}()
	if err := r.work(); err != nil {
		return "", err
	}
	if err := r.lastLook(); err != nil {
		return "", fmt.Errorf("the disk is well again: %w", err)
	}
	expects := r.expects()
	w.fs.mu.Lock()
	left := w.fs.clone(anyMode(rng), rng)
	w.fs.mu.Unlock()
	if err := w.close(); err != nil && !isFault(err) {
		return "", fmt.Errorf("close: %w", err)
	}
	for what, fs := range map[string]*crashFS{"a power cut": left, "a restart": w.fs} {
		cut := &stackCut{seed: seed, fs: fs, expects: expects}
		if err := cut.check(rng); err != nil {
			return "", fmt.Errorf("after %s: %w", what, err)
		}
	}
	return "", nil
}

// TestStackFaults fails one call after the other.
func TestStackFaults(t *testing.T) {
	runs := stackFaultRuns
	if v, err := strconv.Atoi(os.Getenv("OGW_FAULT_RUNS")); err == nil {
		runs = v
	} else if testing.Short() {
		runs = 1
	}
	for _, f := range stackFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			hits := 0
			for range runs {
				seed := rand.Uint64()
				type result struct {
					hit string
					err error
				}
				done := make(chan result, 1)
				go func() {
					hit, err := runStackFault(f, seed)
					done <- result{hit, err}
				}()
				select {
				case r := <-done:
					if r.err != nil {
						t.Fatalf("seed %d: %v", seed, r.err)
					}
					if r.hit != "" {
						hits++
					}
				case <-time.After(stackFaultTime):
					t.Fatalf("seed %d: hangs", seed)
				}
			}
			t.Logf("%s: %d of %d runs met the fault", f.name, hits, runs)
		})
	}
}
