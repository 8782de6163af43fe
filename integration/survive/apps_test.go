package survive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// applications are programs of others, and what they need. They are driven by one
// of programs of the same name.
var applications = map[string][]string{
	"postgres": {"initdb", "postgres", "pgbench", "psql"},
	"sqlite":   {"sqlite3"},
	"build":    {"go"},
	"tail":     {"tail"},
}

func init() {
	programs["postgres"], programs["sqlite"], programs["build"], programs["tail"] = postgres, sqlite, build, tail
}

// installed returns the applications that are there.
func installed(t *testing.T) (list []string) {
	for name, commands := range applications {
		missing := ""
		for _, c := range commands {
			if _, err := exec.LookPath(c); err != nil {
				missing = c
			}
		}
		if missing != "" {
			t.Logf("%s is left out: there is no %s", name, missing)
			continue
		}
		list = append(list, name)
	}
	return list
}

// nobody is a user that is not the superuser, as PostgreSQL wants it.
const nobody = 65534

// as runs a command to its end as a user, and returns what it printed.
func as(uid uint32, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "LC_ALL=C", "PGCONNECT_TIMEOUT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return string(out), err
}

// postgres runs pgbench against a database in the mount, and at the end, after a
// recovery from its log, looks whether all that was committed is there.
func postgres(w *world) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if _, err := as(nobody, "initdb", "-N", "-A", "trust", "-U", "u", data); err != nil {
		return err
	}
	sockets, err := os.MkdirTemp("", "ogw-pg-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sockets)
	if err := os.Chown(sockets, nobody, nobody); err != nil {
		return err
	}
	var log bytes.Buffer
	start := func() (*exec.Cmd, error) {
		cmd := exec.Command("postgres", "-D", data, "-k", sockets, "-c", "listen_addresses=", "-c", "shared_buffers=2MB",
			"-c", "checkpoint_timeout=30s", "-c", "log_checkpoints=off")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StderrPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		ready := make(chan error, 1)
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				fmt.Fprintln(&log, lines.Text())
				if strings.Contains(lines.Text(), "ready to accept") {
					ready <- nil
				}
			}
			ready <- errors.New("the database ended")
		}()
		return cmd, <-ready
	}
	db, err := start()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	defer func() { _ = db.Process.Kill() }()
	bench := func(args ...string) error {
		_, err := as(nobody, "pgbench", append([]string{"-h", sockets, "-U", "u"}, append(args, "postgres")...)...)
		return err
	}
	if err := bench("-i", "-q"); err != nil {
		return err
	}
	const clients, transactions = 4, 20
	err = w.run(func(int) error {
		return bench("-n", "-c", fmt.Sprint(clients), "-t", fmt.Sprint(transactions))
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	if err := db.Process.Signal(syscall.SIGQUIT); err != nil { // at once, without a checkpoint
		return err
	}
	_ = db.Wait() // it ends with an error
	if db, err = start(); err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	out, err := as(nobody, "psql", "-h", sockets, "-U", "u", "-AtX", "-c",
		"select count(*), (select sum(abalance) from pgbench_accounts) = sum(delta), (select sum(bbalance) from pgbench_branches) = sum(delta) from pgbench_history", "postgres")
	if want := fmt.Sprintf("%d|t|t\n", w.steps*clients*transactions); err != nil || out != want {
		return fmt.Errorf("%q in place of %q, %w", out, want, err)
	}
	for _, bad := range []string{"ERROR", "PANIC", "could not"} {
		if strings.Contains(log.String(), bad) {
			return fmt.Errorf("its log has errors:\n%s", log.String())
		}
	}
	return nil
}

// sqlite inserts rows, each in a transaction of its own.
func sqlite(w *world) error {
	cmd := exec.Command("sqlite3", "-batch", "db")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	ask := func(sql, want string) error {
		if _, err := io.WriteString(in, sql+"\n"); err != nil {
			return err
		}
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			return fmt.Errorf("%q in place of %q, %w", got, want, err)
		}
		return nil
	}
	if err := ask("create table t(i integer primary key, b blob); select 'made';", "made"); err != nil {
		return err
	}
	err = w.run(func(i int) error {
		return ask(fmt.Sprintf("insert into t values(%d, randomblob(3000)); select count(*), max(i) from t;", i), fmt.Sprintf("%d|%d", i+1, i))
	})
	if err == nil {
		err = ask("pragma integrity_check;", "ok")
	}
	return errors.Join(err, in.Close(), cmd.Wait())
}

// build builds a program again and again, with cache and sources in the mount,
// and runs it.
func build(w *world) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.WriteFile("go.mod", []byte("module example.com/built\n\ngo 1.21\n"), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir("tmp", 0o700); err != nil {
		return err
	}
	return w.run(func(i int) error {
		text := fmt.Sprintf("package main\n\nfunc main() { println(%d) }\n", i)
		if err := os.WriteFile("main.go", []byte(text), 0o600); err != nil {
			return err
		}
		cmd := exec.Command("go", "build", "-o", "built", ".")
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"), "GOTMPDIR="+filepath.Join(dir, "tmp"), "GOFLAGS=", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		out, err := exec.Command("./built").CombinedOutput()
		if err != nil || string(out) != fmt.Sprintf("%d\n", i) {
			return fmt.Errorf("it says %q, %w", out, err)
		}
		return nil
	})
}

// tail has tail -f show what is appended to a file.
func tail(w *world) error {
	f, err := os.OpenFile("log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command("tail", "-f", "-s", "0.01", "-n", "+1", "log")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	err = w.run(func(i int) error {
		line := fmt.Sprintf("line %d\n", i)
		if _, err := f.WriteString(line); err != nil {
			return err
		}
		if got, err := lines.ReadString('\n'); err != nil || got != line {
			return fmt.Errorf("it shows %q in place of %q, %w", got, line, err)
		}
		return nil
	})
	_ = cmd.Process.Kill() // it does not end otherwise
	_ = cmd.Wait()
	return errors.Join(err, f.Close())
}
