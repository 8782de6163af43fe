package fusebench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// App is a row of what programs do, beside a local file system of equal durability.
type App struct {
	Name, Unit string
	// Options of the mount that the row is for, beside the transport.
	Options string
	// Device and Ring are the shares of the local file system's rate that we want
	// through /dev/fuse and through io_uring; 0: the rate is told.
	Device, Ring float64
	// Least, if it is set, is the rate that they are shares of, wherever it runs.
	Least float64
	// Floor reports whether a file system that stores nothing can do it, too.
	Floor bool
	// Needs are the programs without which the row is left out.
	Needs []string

	prepare func(dir string, s Scale) error // once, before the rounds
	run     func(dir string, s Scale) (float64, error)
}

// Options of mounts.
const (
	flushBehind = "flush_behind"
	writeback   = "writeback"
)

// Rows and rates that the table below is about.
const (
	durableShare, durableRing = 0.6, 0.7
	treeShare                 = 0.4 // of what makes many files, or finds them cold
	warmShare                 = 0.8
	// greppedFiles is 40 us a file.
	greppedFiles = 25_000
)

// Apps are the rows. Those with the same Options follow one another: they share mounts.
func Apps() []App {
	return []App{
		{Name: "sqlite, journal delete", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: []string{"sqlite3"}, run: sqlite("delete")},
		{Name: "sqlite, journal truncate", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: []string{"sqlite3"}, run: sqlite("truncate")},
		{Name: "sqlite, journal persist", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: []string{"sqlite3"}, run: sqlite("persist")},
		{Name: "sqlite, journal wal", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: []string{"sqlite3"}, run: sqlite("wal")},
		{Name: "pgbench, 1 client", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: postgresPrograms, prepare: fillPostgres, run: pgbench(1)},
		{Name: "pgbench, 4 clients", Unit: "txn/s", Device: durableShare, Ring: durableShare, Needs: postgresPrograms, run: pgbench(4)},
		{Name: Durable + ", spread", Unit: "op/s", Device: durableShare, Ring: durableRing,
			prepare: func(d string, _ Scale) error { return fillDurable(d) },
			run:     func(d string, s Scale) (float64, error) { return syncWrites(d, s.Synced, largeBytes) }},
		{Name: Durable + ", hot file", Unit: "op/s", Device: durableShare, Ring: durableRing,
			run: func(d string, s Scale) (float64, error) { return syncWrites(d, s.Synced, hotBytes) }},
		{Name: "db_bench fillsync", Unit: "op/s", Needs: []string{"db_bench"}, run: dbBench("fillsync", 500)},
		{Name: "find, cold", Unit: "files/s", Device: treeShare, Ring: treeShare, Floor: true, prepare: untarOnce, run: cooled(find)},
		{Name: "find, warm", Unit: "files/s", Device: warmShare, Ring: warmShare, Floor: true, run: find},
		{Name: "ls -l, cold", Unit: "entries/s", Device: treeShare, Ring: treeShare, Floor: true, prepare: fillListing, run: cooled(lsLong)},
		{Name: "ls -l, warm", Unit: "entries/s", Device: warmShare, Ring: warmShare, Floor: true, run: lsLong},
		{Name: "git status, cold", Unit: "files/s", Device: treeShare, Ring: treeShare, Floor: true, Needs: []string{"git"}, prepare: addAll, run: cooled(status)},
		{Name: "git status, warm", Unit: "files/s", Device: warmShare, Ring: warmShare, Floor: true, Needs: []string{"git"}, run: status},
		{Name: "grep -r, warm", Unit: "files/s", Device: 1, Ring: 1, Least: greppedFiles, Floor: true, run: grep},
		{Name: "untar", Unit: "files/s", Options: flushBehind, Device: treeShare, Ring: treeShare, Floor: true, prepare: pack, run: untarAgain},
		{Name: "cp -r", Unit: "files/s", Options: flushBehind, Device: treeShare, Ring: treeShare, Floor: true, run: copyTree},
		{Name: "git clone", Unit: "clones/s", Options: flushBehind, Device: treeShare, Ring: treeShare, Needs: []string{"git"}, prepare: makeRepository, run: clone},
		{Name: "db_bench fillseq", Unit: "op/s", Options: flushBehind, Needs: []string{"db_bench"}, run: dbBench("fillseq", 100_000)},
		{Name: "writes of 100 bytes", Unit: "op/s", Options: writeback, Device: 0.6, Ring: 0.6, run: shortWrites},
		{Name: "db_bench fillseq, writeback", Unit: "op/s", Options: writeback, Needs: []string{"db_bench"}, run: dbBench("fillseq", 100_000)},
	}
}

// AppScale is how much the apps do in one of their three rounds.
func AppScale() Scale {
	s := DefaultScale()
	s.Rounds, s.Listing, s.Synced, s.Tree = 3, 20_000, 500, filepath.Join(s.Tree, "cmd")
	return s
}

// MeasureApps runs apps in a fresh directory below each target, in turns, and returns the
// medians by target. What is left there goes with the server.
func MeasureApps(targets []Target, apps []App, s Scale) (results [][]Result, err error) {
	tops := make([]string, len(targets))
	for i, t := range targets {
		if tops[i], err = os.MkdirTemp(t.Dir, "apps"); err == nil {
			err = os.Chmod(tops[i], 0o755) // PostgreSQL runs as somebody else
		}
		if err != nil {
			return nil, err
		}
		defer cleanApps(tops[i])
	}
	results = make([][]Result, len(targets))
	for _, a := range apps {
		g := group{prepare: a.prepare, steps: []step{{a.Name, a.Unit, a.run}}}
		got, err := measureGroups(targets, tops, []group{g}, s)
		if err != nil {
			return nil, err
		}
		for i := range targets {
			results[i] = append(results[i], got[i]...)
		}
	}
	return results, nil
}

// cooled runs fn after the kernel forgot names and attributes. Only root can make it.
func cooled(fn func(string, Scale) (float64, error)) func(string, Scale) (float64, error) {
	return func(dir string, s Scale) (float64, error) {
		if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
			return 0, err
		}
		return fn(dir, s)
	}
}

// shortWrites appends to a log without sync, and ends with one.
func shortWrites(dir string, s Scale) (float64, error) {
	const writes, bytes = 50_000, 100
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line := make([]byte, bytes)
	begin := time.Now()
	for range writes {
		if _, err := f.Write(line); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	r := rate(writes, begin)
	if info, err := f.Stat(); err != nil || info.Size() != writes*bytes {
		return 0, fmt.Errorf("the log has another size, %w", err)
	}
	return r, nil
}
