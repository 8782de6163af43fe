package fusebench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// What the apps do with data bases.

// sqlite inserts rows, each in a transaction of its own.
func sqlite(journal string) func(string, Scale) (float64, error) {
	return func(dir string, s Scale) (float64, error) {
		base := filepath.Join(dir, "sqlite-"+journal)
		defer func() {
			for _, end := range []string{"", "-journal", "-wal", "-shm"} {
				os.Remove(base + end)
			}
		}()
		var script strings.Builder
		fmt.Fprintf(&script, "PRAGMA journal_mode=%s; PRAGMA synchronous=FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);\n", journal)
		for i := range s.Synced {
			fmt.Fprintf(&script, "INSERT INTO t VALUES(%d, '%0100d');\n", i, i)
		}
		cmd := exec.Command("sqlite3", "-bail", base)
		cmd.Stdin = strings.NewReader(script.String())
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("sqlite3: %w: %.500s", err, out)
		}
		return rate(s.Synced, begin), nil
	}
}

// dbBench runs one of RocksDB's benchmarks.
func dbBench(name string, num int) func(string, Scale) (float64, error) {
	figure := regexp.MustCompile(name + ` .* (\d+) ops/sec`)
	return func(dir string, _ Scale) (float64, error) {
		base := filepath.Join(dir, "rocks")
		defer os.RemoveAll(base)
		out, err := exec.Command("db_bench", "--benchmarks="+name, fmt.Sprint("--num=", num), "--db="+base).CombinedOutput()
		return figureOf("db_bench", figure, out, err)
	}
}

// figureOf finds what a benchmark says.
func figureOf(program string, figure *regexp.Regexp, out []byte, err error) (float64, error) {
	m := figure.FindSubmatch(out)
	if err == nil && m == nil {
		err = errors.New("no figure")
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %.500s", program, err, out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

const (
	// nobody is who PostgreSQL runs as: it refuses the superuser.
	nobody = 65534
	// pgSeconds is how long pgbench runs.
	pgSeconds = 4
	pgStart   = 30 * time.Second
)

var (
	postgresPrograms = []string{"initdb", "postgres", "pgbench", "pg_isready"}
	pgFigure         = regexp.MustCompile(`tps = ([\d.]+)`)
)

// Program returns where a program is, also one that Debian keeps out of the PATH.
func Program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		if list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(list) > 0 {
			return list[len(list)-1], nil
		}
	}
	return path, err
}

// asNobody is a command that runs as somebody else than the superuser.
func asNobody(name string, args ...string) (*exec.Cmd, error) {
	path, err := Program(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	return cmd, nil
}

func runNobody(name string, args ...string) ([]byte, error) {
	cmd, err := asNobody(name, args...)
	if err != nil {
		return nil, err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %.500s", name, err, out)
	}
	return out, err
}

// fillPostgres makes the data base.
func fillPostgres(dir string, _ Scale) error {
	data := filepath.Join(dir, "pg")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := os.Chown(data, nobody, nobody); err != nil {
		return err
	}
	if _, err := runNobody("initdb", "-N", "-A", "trust", "-U", "u", data); err != nil {
		return err
	}
	return withPostgres(data, func(args []string) error {
		_, err := runNobody("pgbench", append(args, "-i", "-q", "-s", "5", "postgres")...)
		return err
	})
}

func pgbench(clients int) func(string, Scale) (float64, error) {
	return func(dir string, _ Scale) (r float64, err error) {
		err = withPostgres(filepath.Join(dir, "pg"), func(args []string) error {
			out, err := runNobody("pgbench", append(args, "-n", "-c", strconv.Itoa(clients), "-T", strconv.Itoa(pgSeconds), "postgres")...)
			r, err = figureOf("pgbench", pgFigure, out, err)
			return err
		})
		return r, err
	}
}

// withPostgres runs fn with the server of a data base, and the arguments by which programs
// find it.
func withPostgres(data string, fn func(args []string) error) (err error) {
	sockets, err := os.MkdirTemp("", "ogw-pg-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sockets)
	if err := os.Chown(sockets, nobody, nobody); err != nil {
		return err
	}
	server, err := asNobody("postgres", "-D", data, "-k", sockets, "-c", "listen_addresses=", "-c", "checkpoint_timeout=1h")
	if err != nil {
		return err
	}
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	server.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGINT)
		if e := server.Wait(); err == nil {
			err = e
		}
	}()
	args := []string{"-h", sockets, "-U", "u"}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, err := runNobody("pg_isready", args...); err == nil {
			return fn(args)
		}
		if time.Since(begin) > pgStart {
			return errors.New("PostgreSQL does not start: " + log.String())
		}
	}
}
