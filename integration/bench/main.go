// Command bench measures ogw beside the physical limits of the machine, in
// one run, and prints each figure as a ratio to its limit: absolute times on
// a shared machine mean little.
//
//	go run ./integration/bench [-run SUITES] [-rows ROWS] [-seconds N] [-json FILE] [-dir DIR]
//	go run ./integration/bench -ab BASE_BINARY [-run GROUPS] [-rows ROWS] [-pairs N] [-bound PART]
//	go run ./integration/bench -compare OLD.json NEW.json
//
// A figure and its limits take turns, so that noise meets all of them.
//
// It needs the binary bin/ogw (make build). The FUSE rows need root or
// fusermount3 and /dev/fuse.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"ogw/integration/bench/pairs"
)

// row is one figure beside its limit.
type row struct {
	Name      string    `json:"name"`
	Value     float64   `json:"value"`
	Unit      string    `json:"unit"`
	Samples   []float64 `json:"samples,omitempty"` // Value is their mean
	LimitName string    `json:"limit_name,omitempty"`
	Limit     float64   `json:"limit,omitempty"`  // the lowest of Limits
	Limits    []limit   `json:"limits,omitempty"` // all that were measured beside it
	Target    float64   `json:"target,omitempty"` // smallest ratio that we want
	Note      string    `json:"note,omitempty"`
	// CPU is what the server, and what the lowest limit's, spent on an
	// operation, in microseconds: it hardly depends on what else runs.
	CPU      float64 `json:"cpu_us,omitempty"`
	LimitCPU float64 `json:"limit_cpu_us,omitempty"`
	// ClientCPU is what the client spent on one of the figure's operations,
	// where it is a process of its own: it may be what limits the figure.
	ClientCPU float64 `json:"client_cpu_us,omitempty"`
}

type limit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	CPU   float64 `json:"cpu_us,omitempty"`
}

// ratio is how much of the limit was reached; 0 without a limit. Times and
// memory are better small, rates large.
func (r row) ratio() float64 {
	switch {
	case r.Limit == 0 || r.Value == 0:
		return 0
	case r.Unit == "s" || r.Unit == "ms" || r.Unit == "MiB":
		return r.Limit / r.Value
	default:
		return r.Value / r.Limit
	}
}

// report is what -json writes.
type report struct {
	Time string `json:"time"`
	Go   string `json:"go"`
	CPUs int    `json:"cpus"`
	Rows []row  `json:"rows"`
}

// env is what every suite gets.
type env struct {
	ctx      context.Context
	dir      string // scratch folder on the disk that is measured
	bin      string // the ogw binary
	seconds  float64
	rows     []row
	profiles string  // folder for CPU profiles of the server; "" takes none
	server   *server // that is measured
	// rowsWanted is what -rows leaves of the rows.
	rowsWanted *regexp.Regexp
}

func (e *env) add(r row) {
	e.rows = append(e.rows, r)
	printRow(r)
}

func (e *env) span() time.Duration { return time.Duration(e.seconds * float64(time.Second)) }

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
		{"survive", surviveSuite},
		{"scale", scaleSuite},
		{"nfs", nfsSuite},
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("run", "", "run the suites whose name matches this expression: limits, s3, list, fuse, survive, nfs, scale")
	rows := flag.String("rows", "", "measure the rows whose name matches this expression (all but those of list and scale; for fuse without \"FUSE \")")
	seconds := flag.Float64("seconds", 3, "how long each figure and each of its limits is measured")
	out := flag.String("json", "", "write the results to this file")
	dir := flag.String("dir", "", "scratch folder on the disk to measure (default: a new one below .cache)")
	bin := flag.String("bin", "bin/ogw", "the binary to measure")
	bare := flag.String("bare", "", "serve this folder with net/http alone; the benchmark starts itself so")
	rpcEcho := flag.Bool("rpc-echo", false, "answer RPC calls with nothing; the benchmark starts itself so")
	noopFUSE := flag.String("noop-fuse", "", "mount a file system that stores nothing here; the benchmark starts itself so")
	profiles := flag.String("profiles", "", "keep a CPU profile of the server for each row of s3 and nfs in this folder")
	base := flag.String("ab", "", "measure this binary and -bin in turns: is -bin slower? (make bench-ab)")
	turns := flag.Int("pairs", pairs.Wanted, "with -ab, how many pairs of turns a row has")
	bound := flag.Float64("bound", 0.03, "with -ab, how much worse a row may certainly be, as a part of one")
	compare := flag.Bool("compare", false, "turn two files that -json wrote into input for benchstat, and end")
	flag.Parse()
	if *bare != "" {
		return serveBare(*bare)
	}
	if *rpcEcho {
		return serveEcho()
	}
	if *noopFUSE != "" {
		return serveNoop(*noopFUSE)
	}
	if *compare {
		return compareReports(flag.Args())
	}

	want, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	rowsWanted, err := regexp.Compile(*rows)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	scratch, err := makeScratch(*dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	path, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: run `make build` first", err)
	}
	if *profiles != "" {
		if err := os.MkdirAll(*profiles, 0o755); err != nil {
			return err
		}
	}
	e := &env{ctx: ctx, dir: scratch, bin: path, seconds: *seconds, rowsWanted: rowsWanted, profiles: *profiles}
	if *base != "" {
		return abRun(e, abOptions{base: *base, pairs: *turns, bound: *bound, groups: want, out: *out})
	}
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
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if *out != "" {
		errs = append(errs, writeReport(*out, e.rows))
	}
	return errors.Join(errs...)
}

func makeScratch(dir string) (string, error) {
	if dir == "" {
		dir = ".cache"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	d, err := os.MkdirTemp(dir, "bench-*")
	if err != nil {
		return "", err
	}
	return filepath.Abs(d)
}

func printRow(r row) {
	line := fmt.Sprintf("  %-46s %10s %-5s", r.Name, number(r.Value), r.Unit)
	if r.Limit != 0 {
		line += fmt.Sprintf(" %3.0f %% of %s (%s)", 100*r.ratio(), r.LimitName, number(r.Limit))
		switch {
		case r.Target == 0:
		case r.ratio() >= r.Target:
			line += fmt.Sprintf(", target %.0f %%: met", 100*r.Target)
		default:
			line += fmt.Sprintf(", target %.0f %%: MISSED", 100*r.Target)
		}
	}
	if r.Note != "" {
		line += "  " + r.Note
	}
	fmt.Println(line)
}

func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

func writeReport(path string, rows []row) error {
	b, err := json.MarshalIndent(report{
		Time: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), CPUs: runtime.NumCPU(), Rows: rows,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
