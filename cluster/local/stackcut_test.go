package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
	ns "ogw/vfs"
)

// The whole stack, a namespace over this engine, against power cuts: clients
// run random operations, and before every mutating call on the file system a
// clone is taken of what a cut at that moment may leave. Each clone is opened,
// checked, and compared with what was acknowledged to the clients until then.
const (
	// stackCuts is how many cut points a plain run goes through, in some ten
	// seconds; OGW_CUT_POINTS sets another number.
	stackCuts = 1500
	// stackWorldCuts is how many come from one store: it grows.
	stackWorldCuts = 1500
	stackClients   = 2
	// stackMemTable makes flushes, new logs and compactions frequent.
	stackMemTable = 128 << 10
	// stackWaiting bounds the clones that wait for a checker.
	stackWaiting = 64
	// stackLog is how many operations of each client a failure prints.
	stackLog = 20
	// nestedEvery: one in so many recoveries is cut as well.
	nestedEvery = 8
	// repairEvery: one in so many clones is repaired and must be spotless.
	repairEvery = 8
	// sweepEvery: one in so many clones has its blob files swept at once.
	sweepEvery = 32
	// checkersPerCPU: a closing store waits for a timer or two.
	checkersPerCPU = 4
)

// stackWorld is one store with its clients.
type stackWorld struct {
	seed    uint64
	fs      *crashFS
	cl      *cluster.Cluster
	ns      *ns.FS
	clients []*stackClient
	checks  *stackChecks
	cutting atomic.Bool

	rng *rand.Rand // under fs.mu

	mu      sync.Mutex // after crashFS.mu
	cuts    int
	left    int // cuts to be taken
	waiting []*stackCut
}

// stackCut is a clone, and what it must hold.
type stackCut struct {
	seed    uint64
	number  int
	what    string
	fs      *crashFS
	nested  bool
	expects []expected
}

// expected is what was acknowledged to one client.
type expected struct {
	c           *stackClient
	floor, ceil int
	open        map[ns.Ino][][]byte
	states      []treeState // floor to ceil
	loose       map[int]bool
	unknown     []string // what operations of unknown outcome touched
	log         string
	history     []string
}

func stackOptions(fs *crashFS) Options {
	return Options{Dir: "/store", SegmentBytes: record.Bytes(smallMax), CacheBytes: 8 << 20, fs: fs, disk: crashDisk{fs},
		collectEvery: time.Hour, memTable: stackMemTable, markEvery: 100 * time.Millisecond, tailAlone: 2}
}

func stackConfig() ns.Config {
	return ns.Config{NoBackground: true, InlineBytes: 1024, DirtyBytes: 8 << 20,
		Now: func() time.Time { return time.Now().Add(time.Hour) }} // no blob is young
}

func openStack(fs *crashFS) (*cluster.Cluster, *ns.FS, error) {
	cl, err := Open(ctx, stackOptions(fs))
	if err != nil {
		return nil, nil, err
	}
	n, err := ns.Open(ctx, cl, stackConfig())
	if err != nil {
		cl.Close()
		return nil, nil, err
	}
	return cl, n, nil
}

func newStackWorld(seed uint64, cuts int, checks *stackChecks) (*stackWorld, error) {
	w := &stackWorld{seed: seed, fs: newCrashFS(), checks: checks, left: cuts, rng: rand.New(rand.NewPCG(seed, 1))}
	var err error
	if w.cl, w.ns, err = openStack(w.fs); err != nil {
		return nil, err
	}
	for i := range stackClients {
		c := &stackClient{w: w, bucket: fmt.Sprintf("client%d", i), rng: rand.New(rand.NewPCG(seed, uint64(2+i))),
			cache: contentCache{}, loose: map[int]bool{}, unknown: map[int][]string{}, states: []treeState{{}}}
		a, err := w.ns.Mkdir(ctx, ns.Root, ns.RootIno, c.bucket, 0o755)
		if err != nil {
			return nil, err
		}
		c.dir = a.Ino
		w.clients = append(w.clients, c)
	}
	w.fs.before = w.before
	return w, nil
}

func (w *stackWorld) close() error {
	w.cutting.Store(false)
	for _, c := range w.clients {
		if c.file != nil {
			c.file.Close(ctx)
		}
	}
	return errors.Join(w.ns.Close(ctx), w.cl.Close())
}

// before takes a cut. It runs with crashFS.mu held.
func (w *stackWorld) before(c *fsCall) (int, error) {
	if !c.kind.mutates() || !w.cutting.Load() {
		return c.bytes, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return c.bytes, nil
	}
	w.left--
	w.cuts++
	cut := &stackCut{seed: w.seed, number: w.cuts, what: fmt.Sprintf("%s of %s", c.kind, c.path)}
	for _, c := range w.clients {
		cut.expects = append(cut.expects, expected{c: c, floor: c.floor, ceil: c.begun, open: c.open, log: c.last, history: c.log})
	}
	cut.fs = w.fs.clone(anyMode(w.rng), w.rng)
	w.waiting = append(w.waiting, cut)
	return c.bytes, nil
}

func anyMode(rng *rand.Rand) crashMode {
	return crashMode{percent: []int{0, 10, 50, 90, 100}[rng.IntN(5)], torn: rng.IntN(2) == 0}
}

// release hands over the cuts for which all is known.
func (w *stackWorld) release() {
	w.mu.Lock()
	var ready []*stackCut // none without checks
	w.waiting = slices.DeleteFunc(w.waiting, func(cut *stackCut) bool {
		for i := range cut.expects {
			if e := &cut.expects[i]; e.ceil >= len(e.c.states) {
				return false
			}
		}
		for i := range cut.expects {
			e := &cut.expects[i]
			e.states = e.c.states[e.floor : e.ceil+1]
			e.loose = make(map[int]bool)
			for k := e.floor + 1; k <= e.ceil; k++ {
				e.loose[k-e.floor] = e.c.loose[k]
			}
		}
		ready = append(ready, cut)
		return true
	})
	w.mu.Unlock()
	for _, cut := range ready {
		w.checks.queue <- cut
	}
}

// step runs one operation, and looks at what it left. The error is one that
// no operation may give.
func (c *stackClient) step() error {
	op := pickOp(c.rng)
	with := ctx
	if c.rng.IntN(4) == 0 {
		with = relaxed
	}
	c.w.mu.Lock()
	c.begun = len(c.states)
	c.loose[c.begun] = op.loose
	c.last = op.name
	if with == relaxed {
		c.last += " (relaxed)"
	}
	c.closed, c.touched, c.detail = 0, nil, ""
	c.w.mu.Unlock()
	durable, err := op.run(c, with)
	c.w.mu.Lock()
	c.log = append(c.log[max(0, len(c.log)-stackLog):len(c.log):len(c.log)], fmt.Sprintf("%d %s %s: %v", c.begun, c.last, c.detail, err))
	if durable && err == nil && (with != relaxed || op.strict()) {
		c.floor = c.begun
	}
	c.w.mu.Unlock()
	if errors.Is(err, ns.ErrUnavailable) {
		c.unknown[c.begun] = c.touched
	}
	if c.closed != 0 {
		c.setVersions(c.closed)
	}
	if err != nil && !slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }) {
		return fmt.Errorf("%s: %w", op.name, err)
	}
	return c.look()
}

// look notes what the last operation left.
func (c *stackClient) look() error {
	state, err := lookAt(c.w.ns, c.bucket, c.dir, c.open, c.cache)
	if err != nil {
		return fmt.Errorf("look after %s: %w", c.last, err)
	}
	c.w.mu.Lock()
	c.states = append(c.states, state)
	c.w.mu.Unlock()
	c.w.release()
	return nil
}

// strict operations are durable whatever the context says.
func (op *stackOp) strict() bool {
	return slices.Contains([]string{"sync", "close", "sync all"}, op.name)
}

// run works until all cuts are taken.
func (w *stackWorld) run() error {
	w.cutting.Store(true)
	var wg sync.WaitGroup
	errs := make([]error, len(w.clients))
	for i, c := range w.clients {
		wg.Go(func() {
			for errs[i] == nil && !w.done() && w.checks.failed() == nil {
				errs[i] = c.step()
			}
		})
	}
	wg.Wait()
	w.release()
	return errors.Join(errs...)
}

func (w *stackWorld) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left == 0
}

// stackChecks checks cuts, several at a time.
type stackChecks struct {
	queue chan *stackCut
	wg    sync.WaitGroup
	done  atomic.Int64 // cut points checked
	depth atomic.Int64 // of these, cuts of a recovery

	mu  sync.Mutex
	err error
}

func newStackChecks() *stackChecks {
	s := &stackChecks{queue: make(chan *stackCut, stackWaiting)}
	for range checkersPerCPU * runtime.GOMAXPROCS(0) {
		s.wg.Go(func() {
			for cut := range s.queue {
				s.check(cut)
			}
		})
	}
	return s
}

func (s *stackChecks) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *stackChecks) check(cut *stackCut) {
	if s.failed() != nil {
		return
	}
	rng := rand.New(rand.NewPCG(cut.seed, uint64(cut.number)))
	var nested *stackCut
	if !cut.nested && rng.IntN(nestedEvery) == 0 {
		nested = &stackCut{seed: cut.seed, number: cut.number, what: cut.what, nested: true, expects: cut.expects}
		at, steps := 1+rng.IntN(40), 0
		cut.fs.before = func(c *fsCall) (int, error) {
			if c.kind.mutates() {
				if steps++; steps == at {
					nested.fs = cut.fs.clone(anyMode(rng), rng)
					nested.what += fmt.Sprintf(", recovery cut before %s of %s", c.kind, c.path)
				}
			}
			return c.bytes, nil
		}
	}
	err := cut.check(rng)
	if err == nil && nested != nil && nested.fs != nil {
		s.depth.Add(1)
		s.done.Add(1)
		cut = nested
		err = cut.check(rng)
	}
	s.done.Add(1)
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		var log []string
		for _, e := range cut.expects {
			log = append(log, fmt.Sprintf("%s: %d to %d, %s", e.c.bucket, e.floor, e.ceil, e.log)+"\n"+strings.Join(e.history, "\n"))
		}
		s.err = fmt.Errorf("seed %d, cut %d, before %s [%s]: %w", cut.seed, cut.number, cut.what, strings.Join(log, "\n"), err)
	}
}

// check opens what the cut left.
func (cut *stackCut) check(rng *rand.Rand) error {
	cl, n, err := openStack(cut.fs)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer cl.Close()
	if rng.IntN(sweepEvery) == 0 {
		if err := sweepAll(cl); err != nil {
			return err
		}
	}
	if err := wantClean(n, rng.IntN(repairEvery) == 0); err != nil {
		return err
	}
	for i := range cut.expects {
		if err := cut.expects[i].check(n); err != nil {
			return err
		}
	}
	if err := worksOn(n, rng.IntN(repairEvery) == 0); err != nil {
		return err
	}
	return n.Close(ctx)
}

// sweepAll does at once what sweeper and reaper do slowly after a start.
func sweepAll(cl *cluster.Cluster) error {
	b := cl.Blobs.(*Blobs)
	for i := range record.BlobFanOut {
		if _, err := b.sweeper.folder(fmt.Sprintf("/store/%s/%02x", record.BlobDir, i)); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	b.reaper.reap()
	return nil
}

// wantClean lets Check find nothing but blobs of operations that did not end,
// and after a repair nothing at all.
func wantClean(n *ns.FS, repair bool) error {
	report, err := n.Check(ctx, ns.CheckOptions{Data: repair, Repair: repair}) // looking reads all data that is named
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		if p.Kind != "orphan-blob" || repair && !p.Repaired {
			return fmt.Errorf("check: %s: %s", p.Kind, p.Detail)
		}
	}
	if !repair {
		return nil
	}
	if _, err := n.Collect(ctx); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	report, err = n.Check(ctx, ns.CheckOptions{Data: true})
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("second check: %s: %s", report.Problems[0].Kind, report.Problems[0].Detail)
	}
	return err
}

// worksOn writes after the restart: metadata, and blobs too if asked.
func worksOn(n *ns.FS, blob bool) error {
	size := 10
	if blob {
		size = 5000
	}
	_, err := n.PutObject(ctx, ns.ObjectName{Bucket: "client0", Key: afterFile}, strings.NewReader(strings.Repeat("x", size)), ns.PutOptions{Size: int64(size)})
	if err != nil {
		return fmt.Errorf("put after the restart: %w", err)
	}
	info, err := n.HeadObject(ctx, ns.ObjectName{Bucket: "client0", Key: afterFile}, ns.GetOptions{})
	if err == nil && info.Size != int64(size) {
		err = fmt.Errorf("%d bytes of %d after the restart", info.Size, size)
	}
	return err
}

// check compares one client's bucket with the states that it may have.
func (e *expected) check(n *ns.FS) error {
	got, err := lookAt(n, e.c.bucket, e.c.dir, e.open, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", e.c.bucket, err)
	}
	var why []string
	for i, s := range e.states {
		err := s.same(got, e.open)
		if err == nil || i > 0 && e.loose[i] && between(got, e.states[i-1], s, e.open) == nil {
			return nil
		}
		if len(e.unknown) > 0 {
			inodes := make(map[ns.Ino]bool)
			s.inodesOf(e.unknown, inodes)
			got.inodesOf(e.unknown, inodes)
			if s.except(e.unknown, inodes).same(got.except(e.unknown, inodes), e.open) == nil {
				return nil
			}
		}
		why = append(why, fmt.Sprintf("not state %d: %v", e.floor+i, err))
	}
	return fmt.Errorf("%s: %s", e.c.bucket, strings.Join(why, "; "))
}

func cutPoints(t *testing.T) int {
	if v := os.Getenv("OGW_CUT_POINTS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatalf("OGW_CUT_POINTS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return stackCuts / 10
	}
	return stackCuts
}

// TestStackPowerCuts cuts before every mutating call of random work.
func TestStackPowerCuts(t *testing.T) {
	points := cutPoints(t)
	checks := newStackChecks()
	begun := time.Now()
	for taken := 0; taken < points && checks.failed() == nil; {
		seed := rand.Uint64()
		cuts := min(stackWorldCuts, points-taken)
		w, err := newStackWorld(seed, cuts, checks)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.run(), w.close()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			break
		}
		taken += cuts
		ops := 0
		for _, c := range w.clients {
			ops += len(c.states)
		}
		t.Logf("seed %d: %d cut points among %d operations; %d checked, %.0f s", seed, cuts, ops, checks.done.Load(), time.Since(begun).Seconds())
	}
	close(checks.queue)
	checks.wg.Wait()
	if err := checks.failed(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cut points, %d of them in a recovery, nothing acknowledged lost, %.0f s",
		checks.done.Load(), checks.depth.Load(), time.Since(begun).Seconds())
}
