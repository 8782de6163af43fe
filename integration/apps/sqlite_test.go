package apps

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/integration/testenv"
)

const (
	sqliteWriters = 3
	// sqliteLoad is how long the writers work before somebody is killed.
	sqliteLoad = 1500 * time.Millisecond
)

// TestSQLite loads a database in the mount from several processes, kills
// one of them and then ogw itself in the middle: the database is whole, and
// every transaction that was acknowledged is there.
func TestSQLite(t *testing.T) {
	need(t, "sqlite3")
	for _, journal := range []string{"wal", "delete", "truncate"} {
		t.Run(journal, func(t *testing.T) {
			m := newMount(t)
			db := filepath.Join(m.dir, "test.db")
			m.run(m.base, "sqlite3", db, "PRAGMA journal_mode="+journal+"; CREATE TABLE t(writer INT, n INT, data BLOB, PRIMARY KEY(writer, n)); CREATE INDEX i ON t(data);")

			writers := startWriters(t, db, journal, sqliteWriters)
			writers.loadFor(t, sqliteLoad)
			writers.list[0].cmd.Process.Kill()
			writers.loadFor(t, sqliteLoad/3)
			checkDatabase(t, m, db, writers)

			m.kill()
			writers.end()
			m.start() // replaces the dead mount
			checkDatabase(t, m, db, writers)
			m.run(m.base, "sqlite3", db, "PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA integrity_check;")
			checkDatabase(t, m, db, writers)
		})
	}
}

type writers struct {
	list []*writer
	wg   sync.WaitGroup
}

// writer is one sqlite3 process that commits one row after the other.
type writer struct {
	id    int
	cmd   *exec.Cmd
	in    io.WriteCloser
	acked atomic.Int64 // rows that were committed
}

func startWriters(t *testing.T, db, journal string, n int) *writers {
	t.Helper()
	w := &writers{}
	for i := range n {
		one := &writer{id: i, cmd: exec.Command("sqlite3", "-bail", "-batch", db)}
		var err error
		one.in, err = one.cmd.StdinPipe()
		must(t, err)
		out, err := one.cmd.StdoutPipe()
		must(t, err)
		one.cmd.Stderr = os.Stderr
		must(t, one.cmd.Start())
		w.list = append(w.list, one)
		w.wg.Add(1)
		go func() {
			defer w.wg.Done()
			one.work(bufio.NewScanner(out), journal)
		}()
	}
	t.Cleanup(w.end)
	return w
}

// work goes on until the process ends, or fails. Of SQLite's levels, only
// EXTRA makes the removal of a journal, which is a commit, durable.
func (w *writer) work(out *bufio.Scanner, journal string) {
	fmt.Fprintf(w.in, ".timeout 600000\nPRAGMA journal_mode=%s;\nPRAGMA synchronous=EXTRA;\n", journal)
	for n := int64(1); ; n++ {
		if _, err := fmt.Fprintf(w.in, "BEGIN IMMEDIATE;\nINSERT INTO t VALUES(%d, %d, randomblob(%d));\nCOMMIT;\nSELECT 'acked', %d;\n",
			w.id, n, 100+n*37%9000, n); err != nil {
			return
		}
		for {
			if !out.Scan() {
				return
			}
			if k, ok := strings.CutPrefix(out.Text(), "acked|"); ok && k == strconv.FormatInt(n, 10) {
				w.acked.Store(n)
				time.Sleep(2 * time.Millisecond) // the others wait for the lock by polling
				break
			}
		}
	}
}

// loadFor waits until time has passed and some rows were written since.
func (w *writers) loadFor(t *testing.T, d time.Duration) {
	t.Helper()
	rows := func() (n int64) {
		for _, one := range w.list {
			n += one.acked.Load()
		}
		return n
	}
	before, begin := rows(), time.Now()
	for time.Since(begin) < d || rows() < before+5 {
		if time.Since(begin) > testenv.CommandTimeout {
			t.Fatal("the writers do not advance")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *writers) end() {
	for _, one := range w.list {
		one.cmd.Process.Kill()
	}
	w.wg.Wait()
	for _, one := range w.list {
		one.cmd.Wait()
	}
}

func checkDatabase(t *testing.T, m *mount, db string, w *writers) {
	t.Helper()
	acked := make([]int64, len(w.list)) // before the look, since they go on
	for i, one := range w.list {
		acked[i] = one.acked.Load()
	}
	if out := m.run(m.base, "sqlite3", "-cmd", ".timeout 60000", db, "PRAGMA integrity_check;"); strings.TrimSpace(out) != "ok" {
		t.Errorf("integrity check: %s", tail(out))
	}
	for i := range w.list {
		out := m.run(m.base, "sqlite3", "-cmd", ".timeout 60000", db, fmt.Sprintf("SELECT count(*), ifnull(max(n), 0) FROM t WHERE writer=%d;", i))
		var count, last int64
		if _, err := fmt.Sscanf(out, "%d|%d", &count, &last); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if count != last || last < acked[i] {
			t.Errorf("writer %d: %d rows, the last is %d, %d were acknowledged", i, count, last, acked[i])
		}
		t.Logf("writer %d: %d rows acknowledged, %d there", i, acked[i], count)
	}
}
