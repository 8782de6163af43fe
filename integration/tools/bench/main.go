// Command bench measures ogw beside the physical limits of the machine, in
// one run, and prints each figure as a ratio to its limit: absolute times on
// a shared machine mean little.
//
//	go run ./integration/tools/bench [-run SUITES] [-rows ROWS] [-seconds N] [-json FILE] [-dir DIR]
//	go run ./integration/tools/bench -ab BASE_BINARY [-run GROUPS] [-rows ROWS] [-starts N] [-pairs N] [-bound PART]
//	go run ./integration/tools/bench -compare OLD.json NEW.json
//
// A figure and its limits take turns, so that noise meets all of them.
//
// It needs the binary bin/ogw (make build). The FUSE rows need root or
// fusermount3 and /dev/fuse.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"ogw/integration/tools/bench/pairs"
)

type suite struct {
	name string
	run  func(*env) error
}

func suites() []suite {
	return []suite{
		{"limits", limitsSuite},
		{"s3", s3Suite},
		{"list", listSuite},
		{"fuse", fuseSuite},
		{"apps", appsSuite},
		{"survive", surviveSuite},
		{"scale", scaleSuite},
		{"nfs", nfsSuite},
		{"policies", policiesSuite},
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only, rows     string
	seconds        float64
	out, dir, bin  string
	profiles, base string
	starts, pairs  int
	bound          float64
	compare        bool
	// What the tool starts itself for.
	bare, noopFUSE string
	rpcEcho        bool
}

func parseFlags() (o options) {
	flag.StringVar(&o.only, "run", "", "run the suites whose name matches this expression: limits, s3, list, fuse, apps, survive, nfs, scale, policies")
	flag.StringVar(&o.rows, "rows", "", "measure the rows whose name matches this expression (all but those of list and scale; for fuse without \"FUSE \")")
	flag.Float64Var(&o.seconds, "seconds", 3, "how long each figure and each of its limits is measured")
	flag.StringVar(&o.out, "json", "", "write the results to this file")
	flag.StringVar(&o.dir, "dir", "", "scratch folder on the disk to measure (default: a new one below .cache)")
	flag.StringVar(&o.bin, "bin", "bin/ogw", "the binary to measure")
	flag.StringVar(&o.bare, "bare", "", "serve this folder with net/http alone; the benchmark starts itself so")
	flag.BoolVar(&o.rpcEcho, "rpc-echo", false, "answer RPC calls with nothing; the benchmark starts itself so")
	flag.StringVar(&o.noopFUSE, "noop-fuse", "", "mount a file system that stores nothing here; the benchmark starts itself so")
	flag.StringVar(&o.profiles, "profiles", "", "keep a CPU profile of the server for each row of s3 and nfs in this folder")
	flag.StringVar(&o.base, "ab", "", "measure this binary and -bin in turns: is -bin slower? (make bench-ab)")
	flag.IntVar(&o.starts, "starts", pairs.Starts, "with -ab and in the suite policies, how often both programs are started")
	flag.IntVar(&o.pairs, "pairs", pairs.OfStart, "with -ab and in the suite policies, how many pairs of turns a row has of each start")
	flag.Float64Var(&o.bound, "bound", 0.03, "with -ab, how much worse a row may certainly be, as a part of one")
	flag.BoolVar(&o.compare, "compare", false, "turn two files that -json wrote into input for benchstat, and end")
	flag.Parse()
	return o
}

func run() error {
	o := parseFlags()
	switch {
	case o.bare != "":
		return serveBare(o.bare)
	case o.rpcEcho:
		return serveEcho()
	case o.noopFUSE != "":
		return serveNoop(o.noopFUSE)
	case o.compare:
		return compareReports(flag.Args())
	}
	want, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := newEnv(ctx, &o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	if o.base != "" {
		return abRun(e, abOptions{base: o.base, starts: o.starts, pairs: o.pairs, bound: o.bound, groups: want, out: o.out})
	}
	err = runSuites(e, want)
	if o.out != "" && ctx.Err() == nil {
		err = errors.Join(err, writeReport(o.out, e.rows))
	}
	return err
}

// newEnv checks the flags and makes a scratch folder.
func newEnv(ctx context.Context, o *options) (*env, error) {
	rows, err := regexp.Compile(o.rows)
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("%w: run `make build` first", err)
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := makeScratch(o.dir)
	if err != nil {
		return nil, err
	}
	return &env{ctx: ctx, dir: dir, bin: bin, seconds: o.seconds, rowsWanted: rows, profiles: o.profiles, starts: o.starts, pairs: o.pairs}, nil
}

func runSuites(e *env, want *regexp.Regexp) error {
	var errs []error
	for _, s := range suites() {
		if !want.MatchString(s.name) {
			continue
		}
		fmt.Printf("\n%s\n", s.name)
		if err := s.run(e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			fmt.Printf("  failed: %v\n", err)
		}
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
	}
	return errors.Join(errs...)
}
