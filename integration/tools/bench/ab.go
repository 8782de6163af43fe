package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/tools/bench/pairs"
)

// Two binaries in turns (make bench-ab). Both servers run all the time, each
// over a folder of its own; of each pair of turns, chance says who is first.
// The configurations have nothing that an older binary does not know.

// abTurn is how long a turn takes: 20 pairs of some 30 rows are below a quarter
// of an hour, and the clock of a process counts nanoseconds.
const abTurn = 400 * time.Millisecond

type abOptions struct {
	base   string // binary
	pairs  int
	bound  float64
	groups *regexp.Regexp
	out    string // file for the results; "" for none
}

// abRow is one row for one of the two programs.
type abRow struct {
	name  string
	gauge gauge
}

// abResult is what is kept of a row.
type abResult struct {
	Name  string        `json:"name"`
	Rate  pairs.Ratio   `json:"rate"`
	CPU   pairs.Ratio   `json:"cpu"`
	Pairs []pairs.Pair  `json:"pairs"`
	Says  pairs.Verdict `json:"verdict"`
	Cost  pairs.Verdict `json:"cpu_verdict"`
}

// abBench is one comparison.
type abBench struct {
	abOptions
	base, head *env
	results    []abResult
}

var errWorse = errors.New("some rows are worse than the bound allows")

// abRun compares two binaries; errWorse if the second is slower somewhere.
func abRun(e *env, o abOptions) error {
	if o.pairs < pairs.Min {
		return fmt.Errorf("%d pairs have no interval; at least %d are needed", o.pairs, pairs.Min)
	}
	var err error
	if o.base, err = filepath.Abs(o.base); err != nil {
		return err
	}
	b := &abBench{abOptions: o}
	for _, side := range []struct {
		to        **env
		name, bin string
	}{{&b.base, "base", o.base}, {&b.head, "head", e.bin}} {
		own := *e
		own.dir, own.bin = filepath.Join(e.dir, side.name), side.bin
		if err := os.Mkdir(own.dir, 0o700); err != nil {
			return err
		}
		*side.to = &own
	}
	fmt.Printf("%-52s %-26s %-26s\n", "head/base: median (95 % interval)", "rate", "CPU per operation")
	for _, g := range []struct {
		name string
		run  func() error
	}{{"s3", b.s3}, {"nfs", b.nfs}, {"fuse", b.fuse}, {"device", b.device}} {
		if !o.groups.MatchString(g.name) {
			continue
		}
		if err := g.run(); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return b.finish()
}

// rows measures rows that both programs have, in turns.
func (b *abBench) rows(base, head []abRow) error {
	for i := range base {
		if !b.head.rowsWanted.MatchString(base[i].name) {
			continue
		}
		var list []pairs.Pair
		for range b.pairs {
			p, err := b.pair(base[i], head[i])
			if err != nil {
				return fmt.Errorf("%s: %w", base[i].name, err)
			}
			list = append(list, p)
		}
		b.add(base[i].name, list)
	}
	return nil
}

func (b *abBench) pair(base, head abRow) (p pairs.Pair, err error) {
	for _, i := range rand.Perm(2) {
		if i == 0 {
			p.Base, err = b.turn(base)
		} else {
			p.Head, err = b.turn(head)
		}
		if err == nil {
			err = b.head.ctx.Err()
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func (b *abBench) turn(r abRow) (t pairs.Turn, err error) {
	g := r.gauge
	if g.before != nil {
		if err := g.before(abTurn); err != nil {
			return t, err
		}
	}
	before, err := cpuClock(g.pid)
	if err != nil {
		return t, err
	}
	begin := time.Now()
	if t.Rate, err = g.run(abTurn); err != nil {
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

func (b *abBench) add(name string, list []pairs.Pair) {
	r := abResult{Name: name, Rate: pairs.Rate(list), CPU: pairs.CPU(list), Pairs: list}
	r.Says, r.Cost = r.Rate.OfRate(b.bound), r.CPU.OfCPU(b.bound)
	b.results = append(b.results, r)
	text := func(x pairs.Ratio, v pairs.Verdict) string {
		if v == pairs.Unknown {
			return "not measured"
		}
		return fmt.Sprintf("%.3f (%.3f–%.3f) %s", x.Median, x.Low, x.High, v)
	}
	fmt.Printf("%-52s %-32s %-32s\n", name, text(r.Rate, r.Says), text(r.CPU, r.Cost))
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
	fmt.Printf("of %d ratios, %d %s, %d %s, %d %s, %d %s (bound %.0f %%)\n", 2*len(b.results), count[pairs.Worse], pairs.Worse,
		count[pairs.Unclear], pairs.Unclear, count[pairs.Unchanged], pairs.Unchanged, count[pairs.Better], pairs.Better, 100*b.bound)
	if count[pairs.Worse] > 0 {
		errs = append(errs, errWorse)
	}
	return errors.Join(errs...)
}
