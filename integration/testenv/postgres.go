package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nobody runs the server, which refuses to run as root.
const Nobody = 65534

// Postgres is a PostgreSQL server on loopback.
type Postgres struct {
	t       testing.TB
	bin     string
	data    string
	port    int
	process *Process
}

// StartPostgres starts a new, empty server and ends it with the test. The
// server's programs are Debian's; the test is skipped if they are missing, or
// without root.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 || os.Getuid() != 0 {
		t.Skip("no PostgreSQL, or not root: make test-cluster")
	}
	dir := TempDir(t)
	if err := os.Chown(dir, Nobody, Nobody); err != nil {
		t.Fatal(err)
	}
	p := &Postgres{t: t, bin: filepath.Dir(found[len(found)-1]), data: filepath.Join(dir, "data"), port: FreePort(t)}
	init := p.command("initdb", "-N", "-A", "trust", "-U", "u", "-E", "UTF8", p.data)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(p.stop)
	p.Start()
	return p
}

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	cmd.Dir, cmd.Env = filepath.Dir(p.data), append(os.Environ(), "HOME=/nonexistent", "LC_ALL=C")
	return cmd
}

// Start starts the server, again if it was killed, and waits until it answers.
func (p *Postgres) Start(args ...string) {
	p.t.Helper()
	cmd := p.command("postgres", append([]string{
		"-D", p.data, "-k", filepath.Dir(p.data), "-p", fmt.Sprint(p.port), "-c", "listen_addresses=127.0.0.1",
	}, args...)...)
	process, err := Start(cmd, p.log())
	if err != nil {
		p.t.Fatal(err)
	}
	p.process = process
	for end := time.Now().Add(startLimit); ; time.Sleep(awaitPause) {
		out, err := p.command("pg_isready", "-h", "127.0.0.1", "-p", fmt.Sprint(p.port)).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("PostgreSQL does not answer: %s", out)
		}
	}
}

func (p *Postgres) log() string { return p.data + ".log" }

// Logged returns how often the server logged text.
func (p *Postgres) Logged(text string) int {
	p.t.Helper()
	log, err := os.ReadFile(p.log())
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Count(string(log), text)
}

// Dir holds the databases.
func (p *Postgres) Dir() string { return p.data }

// Addr is where it listens.
func (p *Postgres) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// URL is the database at addr, which may lead to the server by way of another.
func (p *Postgres) URL(addr string) string { return "postgres://u@" + addr + "/postgres" }

// Kill ends the server and its connections as a crash does.
func (p *Postgres) Kill() {
	// The server's children end when it is gone; until then no other may start.
	pids := p.children()
	p.process.Kill()
	p.process = nil
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone already
	}
}

// Signal sends one to the server and to all who serve its connections.
func (p *Postgres) Signal(s syscall.Signal) {
	p.t.Helper()
	for _, pid := range append(p.children(), p.process.PID()) {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			p.t.Fatal(err)
		}
	}
}

// children are the processes of the server, by /proc.
func (p *Postgres) children() (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.process.PID()))
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, word := range strings.Fields(string(list)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (p *Postgres) stop() {
	if p.process == nil {
		return
	}
	err := p.process.Stop(stopLimit)
	if err != nil || p.t.Failed() {
		log, _ := os.ReadFile(p.log())
		p.t.Logf("PostgreSQL: %v\n%s", err, log[max(0, len(log)-tailBytes):])
	}
}
