package integration

import (
	"bufio"
	"bytes"
	be "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/testenv"
)

const (
	// handOverPairs of processes work at a time, all in one directory.
	handOverPairs = 4
	// handOverSteps of all pairs together; OGW_HANDOVERS says otherwise.
	handOverSteps = 1000
	handOverFiles = 3 // of each pair, and as many directories
	handOverBytes = 40_000
	// handOverEnv gives a child where the doors are, its pair, its seed and its
	// number of steps.
	handOverEnv  = "OGW_TEST_HANDOVER"
	handOverWait = time.Hour // for all of them
	// handOverShown is how many wrong looks a process reports.
	handOverShown = 3
)

// TestHandOverMounts lets processes of two mounts change files and directories
// in turn: one changes, notifies the other, and that one finds it by its next system
// calls, through the other mount. The mounts share their superblock, or have
// options for which they cannot.
func TestHandOverMounts(t *testing.T) {
	steps := testenv.Count(t, "OGW_HANDOVERS", handOverSteps)
	for _, kind := range []struct{ name, first, second string }{
		{"shared", "io_uring=off", "io_uring=off,noatime"},
		{"own options", "io_uring=off", "io_uring=off,entry_timeout=50"},
		{"no cache time", "io_uring=off", "io_uring=off,entry_timeout=0,attr_timeout=0"},
		{"second io_uring", "io_uring=off", "io_uring=on"},
		{"first io_uring", "io_uring=on", "io_uring=off"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			restoreRing(t)
			s := newServer(t, options{})
			one, two := s.Mount("-o", kind.first), s.Mount("-o", kind.second)
			if err := os.Mkdir(filepath.Join(one, "handover"), 0o755); err != nil {
				t.Fatal(err)
			}
			if same := sameDevice(t, one, two); same != (kind.name == "shared") {
				t.Errorf("the mounts share a superblock: %v", same)
			}
			handOver(t, "TestHandOverChild", filepath.Join(one, "handover"), filepath.Join(two, "handover"), steps)
			checkClean(t, s)
		})
	}
}

// restoreRing leaves the kernel's switch of FUSE over io_uring as it was.
func restoreRing(t *testing.T) {
	t.Helper()
	const file = "/sys/module/fuse/parameters/enable_uring"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, was, 0); err != nil {
			t.Error(err)
		}
	})
}

func sameDevice(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y syscall.Stat_t
	if err := errors.Join(syscall.Stat(a, &x), syscall.Stat(b, &y)); err != nil {
		t.Fatal(err)
	}
	return x.Dev == y.Dev
}

// handOver runs the pairs of processes, which are the test child. One process
// of each pair is told of the first place, the other of the second.
func handOver(t *testing.T, child, one, two string, steps int) {
	t.Helper()
	begin := time.Now()
	checks, wrong := 0, 0
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	results := make(chan handOverResult, 2*handOverPairs)
	for pair := range handOverPairs {
		var ends [2]struct{ in, out *os.File }
		var err error
		for i := range ends {
			if ends[1-i].in, ends[i].out, err = os.Pipe(); err != nil {
				t.Fatal(err)
			}
		}
		for i, dir := range []string{one, two} {
			cmd := exec.Command(os.Args[0], "-test.run=^"+child+"$", "-test.timeout="+handOverWait.String())
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d|%d|%d", handOverEnv, dir, pair, i, seed, steps/handOverPairs))
			cmd.ExtraFiles = []*os.File{ends[i].in, ends[i].out}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ends[i].in.Close()
			ends[i].out.Close()
			go func() {
				r := handOverResult{err: cmd.Wait()}
				r.read(out.String())
				results <- r
			}()
		}
	}
	for range cap(results) {
		r := <-results
		if r.err != nil || r.text != "" {
			t.Errorf("%v\n%s", r.err, r.text)
		}
		checks += r.checks
		wrong += r.wrong
	}
	t.Logf("%d hand-overs in %v, %d wrong", checks, time.Since(begin).Round(time.Millisecond), wrong)
	if wrong > 0 || checks < steps {
		t.Errorf("%d of %d hand-overs were wrong", wrong, checks)
	}
}

type handOverResult struct {
	checks, wrong int
	text          string
	err           error
}

// read takes what a child printed.
func (r *handOverResult) read(out string) {
	for line := range strings.Lines(out) {
		if _, err := fmt.Sscanf(line, "handover: %d checks, %d wrong\n", &r.checks, &r.wrong); err != nil && strings.HasPrefix(line, "handover: ") {
			r.text += line
		}
	}
	if r.checks == 0 {
		r.text = out
	}
}

// handStep is one change, as one process sends it to the other.
type handStep struct {
	Op, Name, To string
	Seq          uint64
	Size, Off    int
	Mode         fs.FileMode
	Door         int // by which it was made, where a process has several
}

// handWorker is a process of a pair.
type handWorker interface {
	choose(r *rand.Rand, seq uint64) handStep
	do(s handStep) error    // makes the change
	apply(s handStep)       // notes what the other made
	check(s handStep) error // looks at that
}

// handOps are what a step does; those of mkdir and rmdir are about directories.
var handOps = []string{"write", "write", "write", "patch", "append", "truncate", "chmod", "rename", "replace", "unlink",
	"mkdir", "rmdir", "held", "heldtruncate", "mapped"}

// handFile is what a file must be; a nil data is a directory.
type handFile struct {
	data []byte
	mode fs.FileMode
}

// handPeer is a process of a pair, with what it knows of the pair's files.
type handPeer struct {
	dir, prefix string
	state       map[string]handFile
	held        *os.File // open in both processes all the time
}

// TestHandOverChild is a process of TestHandOverMounts.
func TestHandOverChild(t *testing.T) {
	handChild(t, func(dir, prefix string) handWorker {
		return &handPeer{dir: dir, prefix: prefix, state: map[string]handFile{}}
	})
}

// handChild is the body of a child: it changes and looks in turn.
func handChild(t *testing.T, worker func(place, prefix string) handWorker) {
	env := os.Getenv(handOverEnv)
	if env == "" {
		t.Skip("only as a child of a test of hand-overs")
	}
	f := strings.Split(env, "|")
	var pair, side, steps int
	var seed uint64
	if _, err := fmt.Sscan(strings.Join(f[1:], " "), &pair, &side, &seed, &steps); err != nil {
		t.Fatal(err)
	}
	w := worker(f[0], fmt.Sprintf("p%d-", pair))
	in, out := bufio.NewReader(os.NewFile(3, "in")), os.NewFile(4, "out")
	r := rand.New(rand.NewPCG(seed, uint64(pair)<<1|uint64(side)))
	checks, wrong := 0, 0
	fail := func(s handStep, err error) {
		if wrong++; wrong <= handOverShown {
			fmt.Printf("handover: %+v: %v\n", s, err)
		}
	}
	turn := side == 0
	for i := 0; i < steps; i++ {
		var s handStep
		if turn {
			s = w.choose(r, uint64(i+1))
			if err := w.do(s); err != nil {
				fail(s, err)
			}
			b, _ := json.Marshal(s)
			if _, err := out.Write(append(b, '\n')); err != nil {
				t.Fatal(err)
			}
		} else {
			line, err := in.ReadBytes('\n')
			if err == nil {
				err = json.Unmarshal(line, &s)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.apply(s)
			checks++
			if err := w.check(s); err != nil {
				fail(s, err)
			}
		}
		turn = !turn
	}
	fmt.Printf("handover: %d checks, %d wrong\n", checks, wrong)
}

func (p *handPeer) at(name string) string { return filepath.Join(p.dir, p.prefix+name) }

// handData is what no other step wrote, in any eight bytes.
func handData(seq uint64, size int) []byte {
	b := make([]byte, 0, size+8)
	for i := 0; len(b) < size; i++ {
		b = be.BigEndian.AppendUint64(b, seq<<24|uint64(i))
	}
	return b[:size]
}

// choose returns a step that fits the state.
func (p *handPeer) choose(r *rand.Rand, seq uint64) handStep {
	if p.held == nil {
		return handStep{Op: "create", Name: "held", Seq: seq, Size: 5000}
	}
	s := handStep{Op: handOps[r.IntN(len(handOps))], Name: fmt.Sprintf("f%d", r.IntN(handOverFiles)), Seq: seq,
		Size: r.IntN(handOverBytes), Mode: 0o600 | fs.FileMode(r.IntN(0o100))}
	f, there := p.state[s.Name]
	switch s.Op {
	case "patch", "append", "truncate", "chmod", "rename", "unlink":
		if !there {
			s.Op = "write"
			break
		}
		s.Off = r.IntN(len(f.data) + 1)
		if s.To = fmt.Sprintf("f%d", r.IntN(handOverFiles)); s.Op == "rename" && s.To == s.Name {
			s.Op = "append"
		}
	case "mkdir", "rmdir":
		s.Name = fmt.Sprintf("d%d", r.IntN(handOverFiles))
		s.Op = "mkdir"
		if _, there := p.state[s.Name]; there {
			s.Op = "rmdir"
		}
	case "held", "heldtruncate", "mapped":
		s.Name = "held"
		size := len(p.state["held"].data)
		s.Off = r.IntN(size + 1)
		if s.Op == "mapped" {
			s.Size = min(s.Size, size-s.Off)
		}
	}
	return s
}

// apply makes the step in the state.
func (p *handPeer) apply(s handStep) {
	f := p.state[s.Name]
	switch s.Op {
	case "create", "write":
		if f.mode == 0 {
			f.mode = 0o644
		}
		f.data = handData(s.Seq, s.Size)
	case "replace":
		f = handFile{handData(s.Seq, s.Size), 0o644}
	case "append":
		f.data = append(f.data, handData(s.Seq, s.Size)...)
	case "patch", "held", "mapped":
		n := handData(s.Seq, s.Size)
		f.data = append(f.data[:s.Off:s.Off], append(n, f.data[min(len(f.data), s.Off+len(n)):]...)...)
	case "truncate", "heldtruncate":
		f.data = append(f.data, make([]byte, max(0, s.Size-len(f.data)))...)[:s.Size]
	case "chmod":
		f.mode = s.Mode
	case "mkdir":
		f = handFile{nil, 0o755 | fs.ModeDir}
	case "rename":
		p.state[s.To] = f
		delete(p.state, s.Name)
		return
	case "unlink", "rmdir":
		delete(p.state, s.Name)
		return
	}
	p.state[s.Name] = f
}

// do makes the step through the mount.
func (p *handPeer) do(s handStep) (err error) {
	defer p.apply(s)
	name := p.at(s.Name)
	put := func(name string, flags int, off int64, append bool) error {
		f, err := os.OpenFile(name, os.O_WRONLY|flags, 0o644)
		if err != nil {
			return err
		}
		data := handData(s.Seq, s.Size)
		if append {
			_, err = f.Write(data)
		} else {
			_, err = f.WriteAt(data, off)
		}
		return errors.Join(err, f.Close())
	}
	switch s.Op {
	case "create":
		if err = put(name, os.O_CREATE|os.O_EXCL, 0, false); err == nil {
			p.held, err = os.OpenFile(name, os.O_RDWR, 0)
		}
		return err
	case "write":
		return put(name, os.O_CREATE|os.O_TRUNC, 0, false)
	case "replace":
		return errors.Join(put(p.at("new"), os.O_CREATE|os.O_EXCL, 0, false), syscall.Rename(p.at("new"), name))
	case "append":
		return put(name, os.O_APPEND, 0, true)
	case "patch":
		return put(name, 0, int64(s.Off), false)
	case "truncate":
		return os.Truncate(name, int64(s.Size))
	case "chmod":
		return os.Chmod(name, s.Mode)
	case "rename":
		return syscall.Rename(name, p.at(s.To))
	case "unlink":
		return syscall.Unlink(name)
	case "mkdir":
		return syscall.Mkdir(name, 0o755)
	case "rmdir":
		return syscall.Rmdir(name)
	case "held":
		_, err = p.held.WriteAt(handData(s.Seq, s.Size), int64(s.Off))
		return err
	case "heldtruncate":
		return p.held.Truncate(int64(s.Size))
	case "mapped":
		if s.Size == 0 {
			return nil
		}
		m, err := unix.Mmap(int(p.held.Fd()), 0, s.Off+s.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(m[s.Off:], handData(s.Seq, s.Size))
		return errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m))
	}
	return fmt.Errorf("unknown step %s", s.Op)
}

// check looks at what the other process changed.
func (p *handPeer) check(s handStep) error {
	if s.Op == "create" {
		var err error
		if p.held, err = os.OpenFile(p.at("held"), os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if s.Name == "held" {
		return p.checkHeld(int(s.Seq))
	}
	err := p.checkName(s.Name)
	if s.Op == "rename" {
		err = errors.Join(err, p.checkName(s.To))
	}
	if s.Op == "replace" {
		err = errors.Join(err, p.checkName("new"))
	}
	if s.Seq%8 == 0 {
		err = errors.Join(err, p.checkList())
	}
	return err
}

// checkHeld reads the file that is open all the time; every other time it first
// asks for the size.
func (p *handPeer) checkHeld(seq int) error {
	want := p.state["held"].data
	if seq%4 < 2 {
		if i, err := p.held.Stat(); err != nil || i.Size() != int64(len(want)) {
			return fmt.Errorf("held: size %d, %v; want %d", i.Size(), err, len(want))
		}
	}
	b := make([]byte, len(want)+100)
	n, err := p.held.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return handDiffers("held", b[:n], want)
}

func (p *handPeer) checkName(name string) error {
	want, there := p.state[name]
	i, err := os.Lstat(p.at(name))
	if !there {
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("lstat %s, which is gone: %v", name, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if i.Mode() != want.mode {
		return fmt.Errorf("%s has mode %v, want %v", name, i.Mode(), want.mode)
	}
	if i.IsDir() {
		return nil
	}
	if i.Size() != int64(len(want.data)) {
		return fmt.Errorf("%s has size %d, want %d", name, i.Size(), len(want.data))
	}
	b, err := os.ReadFile(p.at(name))
	if err != nil {
		return err
	}
	return handDiffers(name, b, want.data)
}

// checkList lists the directory in which all pairs work.
func (p *handPeer) checkList() error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, e := range entries {
		if name, ours := strings.CutPrefix(e.Name(), p.prefix); ours {
			got[name] = true
		}
	}
	return handListed(got, p.state)
}

func handListed[V any](got map[string]bool, want map[string]V) error {
	names := map[string]bool{}
	for name := range want {
		names[name] = true
	}
	if !maps.Equal(got, names) {
		return fmt.Errorf("listed %v, want %v", got, names)
	}
	return nil
}

func handDiffers(name string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Errorf("%s has %d bytes, want %d; they differ from %d on: %x, want %x", name, len(got), len(want), i,
		got[i:min(len(got), i+16)], want[i:min(len(want), i+16)])
}
