package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/tools/bench/pairs"
)

// Two binaries in turns (make bench-ab). Each has a folder of its own, with what
// the rows read, for as long as a group of rows takes. Both servers and their clients
// start anew many times (package pairs says why), and of each start every row gets some
// pairs of turns. Chance says who starts first, and whose turn is first. Rows that read
// come before those that write: what a server does later about what was written, and the
// disk, would be theirs. The configurations have nothing that an older binary does not
// know.

const (
	// abTurn is how long a turn takes. Short turns are close to one another: of
	// virtual machines, the host takes processors away for tenths of a second, and
	// a process is charged for that time, too.
	abTurn = 100 * time.Millisecond
	// abWarmUp is how long a program does what a row does before its first turn:
	// what it reads again and again is then in its memory.
	abWarmUp = 150 * time.Millisecond
	// abQuiet is how long a server may work after its start before it is measured.
	abQuiet = 3 * time.Second
)

type abOptions struct {
	base   string // binary
	starts int
	pairs  int // of each start
	bound  float64
	groups *regexp.Regexp
	out    string // file for the results; "" for none
}

// abRow is one row for one of the two programs.
type abRow struct {
	name  string
	gauge gauge
	bound float64 // 0: that of the comparison
}

// abResult is what is kept of a row.
type abResult struct {
	Name   string        `json:"name"`
	Bound  float64       `json:"bound"`
	Rate   pairs.Ratio   `json:"rate"`
	CPU    pairs.Ratio   `json:"cpu"`
	Starts []pairs.Start `json:"starts"`
	Says   pairs.Verdict `json:"verdict"`
	Cost   pairs.Verdict `json:"cpu_verdict"`
}

// abBench is one comparison.
type abBench struct {
	abOptions
	sides      [2]*env // base and head
	rowsWanted *regexp.Regexp
	results    []abResult
}

var errWorse = errors.New("some rows are worse than the bound allows")

// abRun compares two binaries; errWorse if the second is slower somewhere.
func abRun(e *env, o abOptions) error {
	if o.starts < pairs.MinStarts || o.pairs < 1 {
		return fmt.Errorf("%d starts of %d pairs have no interval; at least %d of 1 are needed", o.starts, o.pairs, pairs.MinStarts)
	}
	var err error
	if o.base, err = filepath.Abs(o.base); err != nil {
		return err
	}
	b := &abBench{abOptions: o, rowsWanted: e.rowsWanted}
	for i, bin := range []string{o.base, e.bin} {
		own := *e
		own.bin = bin
		b.sides[i] = &own
	}
	fmt.Printf("%-52s %-32s %-32s\n", "head/base: median (95 % interval)", "rate", "CPU per operation")
	for _, g := range []struct {
		name string
		run  func() error
	}{{"s3", b.s3}, {"nfs", b.nfs}, {"fuse", b.fuse}, {"device", b.device}} {
		if !o.groups.MatchString(g.name) {
			continue
		}
		for i, side := range b.sides {
			side.dir = filepath.Join(e.dir, fmt.Sprintf("%s-%d", g.name, i))
			if err := os.Mkdir(side.dir, 0o700); err != nil {
				return err
			}
		}
		from := len(b.results)
		if err := g.run(); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		b.judge(from)
	}
	return b.finish()
}

// eachStart starts both programs again and again, and measures what start gives of
// them. The first start makes what the rows read, and is not measured.
func eachStart[T any](b *abBench, start func(e *env, first bool) (T, func(), error), measure func([2]T) error) error {
	once := func(first bool) error {
		var got [2]T
		for _, i := range rand.Perm(2) {
			t, stop, err := start(b.sides[i], first)
			if err != nil {
				return err
			}
			defer stop()
			got[i] = t
		}
		if first {
			return nil
		}
		return measure(got)
	}
	for i := range b.starts + 1 {
		fmt.Fprintf(os.Stderr, "start %d of %d\r", i, b.starts)
		if err := once(i == 0); err != nil {
			return err
		}
	}
	return nil
}

// quiet waits until a server that has just started has done what it does on its own
// then, or abQuiet has passed.
func quiet(pid int) error {
	const look, idle = 50 * time.Millisecond, 2 * time.Millisecond
	last, err := cpuClock(pid)
	for begin := time.Now(); err == nil && time.Since(begin) < abQuiet; {
		time.Sleep(look)
		var now time.Duration
		if now, err = cpuClock(pid); now-last < idle {
			break
		}
		last = now
	}
	return err
}

// rows measures the pairs of one start.
func (b *abBench) rows(of [2][]abRow) error {
	for i, base := range of[0] {
		if !b.rowsWanted.MatchString(base.name) {
			continue
		}
		s, err := b.row([2]abRow{base, of[1][i]})
		if err != nil {
			return fmt.Errorf("%s: %w", base.name, err)
		}
		b.keep(base.name, base.bound, s)
	}
	return nil
}

func (b *abBench) row(of [2]abRow) (s pairs.Start, err error) {
	for _, r := range of {
		if _, err := r.turn(abWarmUp); err != nil {
			return nil, err
		}
	}
	for range b.pairs {
		var turns [2]pairs.Turn
		for _, i := range rand.Perm(2) {
			if turns[i], err = of[i].turn(abTurn); err != nil {
				return nil, err
			}
		}
		if err := b.sides[0].ctx.Err(); err != nil {
			return nil, err
		}
		s = append(s, pairs.Pair{Base: turns[0], Head: turns[1]})
	}
	return s, nil
}

func (r abRow) turn(span time.Duration) (t pairs.Turn, err error) {
	g := r.gauge
	if g.before != nil {
		if err := g.before(span); err != nil {
			return t, err
		}
	}
	before, err := cpuClock(g.pid)
	if err != nil {
		return t, err
	}
	begin := time.Now()
	if t.Rate, err = g.run(span); err != nil {
		return t, err
	}
	took := time.Since(begin)
	after, err := cpuClock(g.pid)
	if err != nil {
		return t, err
	}
	if t.Rate == 0 {
		return t, errors.New("nothing was done in the time given")
	}
	t.CPU = float64((after - before).Nanoseconds()) / 1e3 / (t.Rate * took.Seconds())
	if g.after != nil {
		err = g.after()
	}
	return t, err
}

// cpuClock is the processor time of a process, ended threads included, to the
// nanosecond: CPUCLOCK_SCHED of clock_gettime(2), where /proc has ticks of 10 ms.
func cpuClock(pid int) (time.Duration, error) {
	const cpuclockSched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuclockSched), &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return time.Duration(ts.Nano()), nil
}

// keep adds what one start gave to a row, whose bound is b's if it is 0 here.
func (b *abBench) keep(name string, bound float64, s pairs.Start) {
	i := slices.IndexFunc(b.results, func(r abResult) bool { return r.Name == name })
	if i < 0 {
		i = len(b.results)
		if bound == 0 {
			bound = b.bound
		}
		b.results = append(b.results, abResult{Name: name, Bound: bound})
	}
	b.results[i].Starts = append(b.results[i].Starts, s)
}

// judge says what the rows of a group come to.
func (b *abBench) judge(from int) {
	text := func(x pairs.Ratio, v pairs.Verdict) string {
		if v == pairs.Unknown {
			return "not measured"
		}
		return fmt.Sprintf("%.3f (%.3f–%.3f) %s", x.Median, x.Low, x.High, v)
	}
	for i := from; i < len(b.results); i++ {
		r := &b.results[i]
		r.Rate, r.CPU = pairs.Rate(r.Starts), pairs.CPU(r.Starts)
		r.Says, r.Cost = r.Rate.OfRate(r.Bound), r.CPU.OfCPU(r.Bound)
		fmt.Printf("%-52s %-32s %-32s\n", r.Name, text(r.Rate, r.Says), text(r.CPU, r.Cost))
	}
}

// finish writes the results and says what they come to.
func (b *abBench) finish() error {
	var errs []error
	if b.out != "" {
		text, err := json.MarshalIndent(b.results, "", "  ")
		if err == nil {
			err = os.WriteFile(b.out, text, 0o644)
		}
		errs = append(errs, err)
	}
	count := map[pairs.Verdict]int{}
	for _, r := range b.results {
		count[r.Says]++
		count[r.Cost]++
	}
	bound := ""
	if b.bound > 0 {
		bound = fmt.Sprintf(" (bound %.0f %%)", 100*b.bound)
	}
	fmt.Printf("of %d ratios, %d %s, %d %s, %d %s, %d %s%s\n", 2*len(b.results), count[pairs.Worse], pairs.Worse,
		count[pairs.Unclear], pairs.Unclear, count[pairs.Unchanged], pairs.Unchanged, count[pairs.Better], pairs.Better, bound)
	if count[pairs.Worse] > 0 {
		errs = append(errs, errWorse)
	}
	return errors.Join(errs...)
}
