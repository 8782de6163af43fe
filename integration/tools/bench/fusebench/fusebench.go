// Package fusebench measures file systems through the kernel: the ogw mount
// beside a FUSE file system without a store and a plain directory.
package fusebench

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Scale is how much is measured.
type Scale struct {
	Rounds   int    // the file systems take turns this often
	Files    int    // for create, stat, open, unlink
	Listing  int    // entries of the directory that is listed
	Bytes    int64  // written and read in sequence
	Random   int    // 4 KiB blocks read and written at random offsets
	Synced   int    // 4 KiB blocks that are made durable one at a time
	Parallel int    // threads of the parallel figures
	Tree     string // is packed, unpacked, and asked for its git status; "" leaves that out
}

// DefaultScale takes a minute or two for three file systems.
func DefaultScale() Scale {
	return Scale{Rounds: 5, Files: 2000, Listing: 100_000, Bytes: 256 << 20, Random: 4000, Synced: 300, Parallel: 4,
		Tree: filepath.Join(goRoot(), "src")}
}

// goRoot is where the sources of the toolchain are.
func goRoot() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Target is one file system that is measured: a directory on it, and what its
// server has spent of the processors so far (nil: there is none to ask).
type Target struct {
	Dir string
	CPU func() (time.Duration, error)
	PID int // of the server, where there is one
}

// Result is one figure: operations or bytes per second.
type Result struct {
	Name string
	Unit string // "op/s", "entries/s", "MB/s" or "files/s"
	Rate float64
	// CPU is what the server spent on an operation, an entry, a megabyte or a
	// file, in microseconds; 0 if it is not known.
	CPU float64
}

type step struct {
	name, unit string
	run        func(dir string, s Scale) (float64, error)
}

// group is what is measured as a whole: its later steps use what the first
// left.
type group struct {
	prepare func(dir string, s Scale) error // once
	steps   []step
}

// groups are measured in each round.
var groups = []group{
	{steps: []step{
		{"create", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, create) }},
		{"stat, cached", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, stat) }},
		{"stat, cold", "op/s", func(d string, s Scale) (float64, error) { return cold(d, s, 1, stat) }},
		{"open+close", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, open) }},
		{"unlink", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, 1, os.Remove) }},
	}},
	{steps: []step{
		{"create, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, create) }},
		{"stat, cold, parallel", "op/s", func(d string, s Scale) (float64, error) { return cold(d, s, s.Parallel, stat) }},
		{"open+close, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, open) }},
		{"unlink, parallel", "op/s", func(d string, s Scale) (float64, error) { return perFile(d, s, s.Parallel, os.Remove) }},
	}},
	{steps: []step{{"create 4 KiB, close", "op/s", createSmalls}}},
	{prepare: fillListing, steps: []step{
		{"readdir", "entries/s", readdir},
		{"readdir with stat", "entries/s", readdirStat},
	}},
	{steps: []step{
		{"write, sequential", "MB/s", writeSeq},
		{"read, sequential", "MB/s", readSeq},
		{"write, O_DIRECT", "MB/s", writeDirect},
		{"read, O_DIRECT", "MB/s", readDirect},
		{"write 4 KiB, random", "op/s", func(d string, s Scale) (float64, error) { return random(d, s, unix.O_WRONLY) }},
		{"read 4 KiB, random", "op/s", func(d string, s Scale) (float64, error) { return random(d, s, unix.O_RDONLY) }},
	}},
	{prepare: func(d string, _ Scale) error { return fillDurable(d) }, steps: []step{
		{Durable + ", hot file", "op/s", func(d string, s Scale) (float64, error) { return syncWrites(d, s.Synced, hotBytes) }},
		{Durable + ", large file", "op/s", func(d string, s Scale) (float64, error) { return syncWrites(d, s.Synced, largeBytes) }},
	}},
}

// tree is measured once: it takes long.
var tree = group{steps: []step{
	{"untar of the Go tree", "files/s", untar},
	{"git status of it, cold", "files/s", func(d string, s Scale) (float64, error) { return gitStatus(d, true) }},
	{"git status of it, cached", "files/s", func(d string, s Scale) (float64, error) { return gitStatus(d, false) }},
}}

// wanted leaves the groups with a step that want matches; nil wants all.
func wanted(list []group, want *regexp.Regexp) []group {
	return slices.DeleteFunc(slices.Clone(list), func(g group) bool {
		return want != nil && !slices.ContainsFunc(g.steps, func(st step) bool { return want.MatchString(st.name) })
	})
}

// Measure runs the groups with a step that want matches in a fresh directory
// below each target, which it removes. The targets take turns, so that what
// else the machine does hits all of them alike; of the rounds, the median
// counts.
func Measure(targets []Target, s Scale, want *regexp.Regexp) (results [][]Result, err error) {
	tops := make([]string, len(targets))
	for i, t := range targets {
		if tops[i], err = os.MkdirTemp(t.Dir, "fusebench"); err != nil {
			return nil, err
		}
		defer func() {
			if e := os.RemoveAll(tops[i]); err == nil {
				err = e
			}
		}()
	}
	results, err = measureGroups(targets, tops, wanted(groups, want), s)
	if err != nil || s.Tree == "" {
		return results, err
	}
	s.Rounds = 1
	got, err := measureGroups(targets, tops, wanted([]group{tree}, want), s)
	for i := range got {
		results[i] = append(results[i], got[i]...)
	}
	return results, err
}

// measureGroups runs groups in a directory of each target, in turns, and returns the
// medians of the rounds by target.
func measureGroups(targets []Target, tops []string, list []group, s Scale) ([][]Result, error) {
	for _, g := range list {
		for i := range targets {
			if g.prepare == nil {
				continue
			}
			if err := g.prepare(tops[i], s); err != nil {
				return nil, err
			}
		}
	}
	samples := make([][][]Result, len(targets)) // by target and step
	for range s.Rounds {
		for i := range targets {
			got, err := round(targets[i], tops[i], list, s)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], got)
		}
	}
	results := make([][]Result, len(targets))
	for i := range targets {
		results[i] = medians(samples[i])
	}
	return results, nil
}

// Turns runs the groups as Measure does, each group n times, and returns what
// each target gave in each turn, by target, turn and step. order says who comes
// first in a turn. The tree is left out: it takes long.
func Turns(targets []Target, s Scale, want *regexp.Regexp, n int, order func() []int) (results [][][]Result, err error) {
	results = make([][][]Result, len(targets))
	for _, g := range wanted(groups, want) {
		got, err := groupTurns(targets, g, s, n, order)
		if err != nil {
			return nil, err
		}
		for i := range targets {
			if results[i] == nil {
				results[i] = make([][]Result, n)
			}
			for turn := range n {
				results[i][turn] = append(results[i][turn], got[i][turn]...)
			}
		}
	}
	return results, nil
}

func groupTurns(targets []Target, g group, s Scale, n int, order func() []int) (results [][][]Result, err error) {
	tops := make([]string, len(targets))
	for i, t := range targets {
		if tops[i], err = os.MkdirTemp(t.Dir, "fusebench"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(tops[i])
		if g.prepare != nil {
			if err := g.prepare(tops[i], s); err != nil {
				return nil, err
			}
		}
	}
	results = make([][][]Result, len(targets))
	for range n {
		for _, i := range order() {
			got, err := round(targets[i], tops[i], []group{g}, s)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], got)
		}
	}
	return results, nil
}

// round runs all steps once.
func round(t Target, top string, list []group, s Scale) (results []Result, err error) {
	for _, g := range list {
		for _, st := range g.steps {
			r, err := t.measure(st, top, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", t.Dir, st.name, err)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

func (t Target) measure(st step, top string, s Scale) (Result, error) {
	var before, after time.Duration
	var err error
	if t.CPU != nil {
		if before, err = t.CPU(); err != nil {
			return Result{}, err
		}
	}
	begin := time.Now()
	r := Result{Name: st.name, Unit: st.unit}
	if r.Rate, err = st.run(top, s); err != nil {
		return r, err
	}
	took := time.Since(begin)
	if t.CPU != nil {
		if after, err = t.CPU(); err != nil {
			return r, err
		}
		r.CPU = float64((after - before).Microseconds()) / (r.Rate * took.Seconds())
	}
	return r, nil
}

// medians are those of the rounds, step by step.
func medians(rounds [][]Result) (results []Result) {
	if len(rounds) == 0 {
		return nil
	}
	for n := range rounds[0] {
		var rates, cpu []float64
		for _, r := range rounds {
			rates, cpu = append(rates, r[n].Rate), append(cpu, r[n].CPU)
		}
		slices.Sort(rates)
		slices.Sort(cpu)
		r := rounds[0][n]
		r.Rate, r.CPU = rates[len(rates)/2], cpu[len(cpu)/2]
		results = append(results, r)
	}
	return results
}

// Print writes a table: what was measured, its limits, and the ratio to each.
func Print(w io.Writer, own []Result, noop, plain []Result) {
	fmt.Fprintf(w, "%-24s %12s %12s %7s %12s %7s\n", "", "ogw", "no-op FUSE", "ratio", "plain dir", "ratio")
	for i, r := range own {
		fmt.Fprintf(w, "%-24s %12s %12s %6.0f%% %12s %6.0f%%\n", r.Name, format(r), format(noop[i]),
			100*r.Rate/noop[i].Rate, format(plain[i]), 100*r.Rate/plain[i].Rate)
	}
}

func format(r Result) string { return fmt.Sprintf("%.0f %s", r.Rate, r.Unit) }

// perFile runs op on every file of a directory with n threads.
func perFile(dir string, s Scale, n int, op func(string) error) (float64, error) {
	d := filepath.Join(dir, "files")
	if err := os.MkdirAll(d, 0o755); err != nil {
		return 0, err
	}
	names := make([]string, s.Files)
	for i := range names {
		names[i] = filepath.Join(d, fmt.Sprintf("file-%06d", i))
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, n)
	begin := time.Now()
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				if err := op(names[i]); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	wg.Wait()
	took := time.Since(begin)
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(s.Files) / took.Seconds(), nil
	}
}

// cold is perFile after the kernel forgot all names and attributes. Only
// root can make it do so.
func cold(dir string, s Scale, n int, op func(string) error) (float64, error) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		return 0, err
	}
	return perFile(dir, s, n, op)
}

func create(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func createSmall(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, make([]byte, 4096)); err != nil {
		unix.Close(fd)
		return err
	}
	return unix.Close(fd)
}

func stat(name string) error {
	var st unix.Stat_t
	return unix.Lstat(name, &st)
}

func open(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// createSmalls leaves nothing: the next round makes the names again.
func createSmalls(dir string, s Scale) (float64, error) {
	rate, err := perFile(dir, s, 1, createSmall)
	if err != nil {
		return 0, err
	}
	_, err = perFile(dir, s, 1, os.Remove)
	return rate, err
}

// fillListing makes the directory that is listed.
func fillListing(dir string, s Scale) error {
	d := filepath.Join(dir, "listing")
	if err := os.Mkdir(d, 0o755); err != nil {
		return err
	}
	for i := range s.Listing {
		if err := create(filepath.Join(d, fmt.Sprintf("entry-%08d", i))); err != nil {
			return err
		}
	}
	return nil
}

func readdir(dir string, s Scale) (float64, error) {
	return list(filepath.Join(dir, "listing"), s, func(f *os.File, n int) (int, error) {
		names, err := f.Readdirnames(n)
		return len(names), err
	})
}

func readdirStat(dir string, s Scale) (float64, error) {
	return list(filepath.Join(dir, "listing"), s, func(f *os.File, n int) (int, error) {
		infos, err := f.Readdir(n)
		return len(infos), err
	})
}

func list(d string, s Scale, read func(*os.File, int) (int, error)) (float64, error) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		return 0, err
	}
	f, err := os.Open(d)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	begin, n := time.Now(), 0
	for {
		got, err := read(f, 1000)
		n += got
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if n != s.Listing {
		return 0, fmt.Errorf("%d entries listed of %d", n, s.Listing)
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

func writeSeq(dir string, s Scale) (float64, error)    { return write(dir, s, 0) }
func writeDirect(dir string, s Scale) (float64, error) { return write(dir, s, unix.O_DIRECT) }
func readSeq(dir string, s Scale) (float64, error)     { return read(dir, s, 0) }
func readDirect(dir string, s Scale) (float64, error)  { return read(dir, s, unix.O_DIRECT) }

// write includes the fsync: what is measured is durable.
func write(dir string, s Scale, flags int) (float64, error) {
	fd, err := unix.Open(filepath.Join(dir, "data"), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|flags, 0o644)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf, free, err := aligned()
	if err != nil {
		return 0, err
	}
	defer free()
	begin := time.Now()
	for n := int64(0); n < s.Bytes; n += ioBytes {
		if _, err := unix.Write(fd, buf); err != nil {
			return 0, err
		}
	}
	if err := unix.Fsync(fd); err != nil {
		return 0, err
	}
	return float64(s.Bytes) / 1e6 / time.Since(begin).Seconds(), nil
}

func read(dir string, s Scale, flags int) (float64, error) {
	fd, err := unix.Open(filepath.Join(dir, "data"), unix.O_RDONLY|flags, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil { // the mount's pages only
		return 0, err
	}
	buf, free, err := aligned()
	if err != nil {
		return 0, err
	}
	defer free()
	begin, n := time.Now(), int64(0)
	for {
		got, err := unix.Read(fd, buf)
		if err != nil {
			return 0, err
		}
		if got == 0 {
			break
		}
		n += int64(got)
	}
	if n != s.Bytes {
		return 0, fmt.Errorf("%d bytes read of %d", n, s.Bytes)
	}
	return float64(n) / 1e6 / time.Since(begin).Seconds(), nil
}

// random reads or writes blocks of the file that write left. Writes include
// an fsync at the end.
func random(dir string, s Scale, flags int) (float64, error) {
	const block = 4096
	fd, err := unix.Open(filepath.Join(dir, "data"), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM); err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(1, 2)) // the same offsets for all
	buf := make([]byte, block)
	begin := time.Now()
	for range s.Random {
		off := r.Int64N(s.Bytes/block) * block
		if flags == unix.O_RDONLY {
			_, err = unix.Pread(fd, buf, off)
		} else {
			_, err = unix.Pwrite(fd, buf, off)
		}
		if err != nil {
			return 0, err
		}
	}
	if flags != unix.O_RDONLY {
		if err := unix.Fsync(fd); err != nil {
			return 0, err
		}
	}
	return float64(s.Random) / time.Since(begin).Seconds(), nil
}
