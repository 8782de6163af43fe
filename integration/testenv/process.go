package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// CommandTimeout is far above what any program of the suites takes.
	CommandTimeout = 10 * time.Minute
	// tailBytes is how much of a log or an output a failure shows.
	tailBytes = 8 << 10
	// standstillLimit is far above what the threads of a process take to stop.
	standstillLimit = 10 * time.Second
)

// Process is a program that runs beside the test.
type Process struct {
	cmd  *exec.Cmd
	done chan error
}

// Start starts cmd; what it prints is added to the file log.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd, make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done receives how it ended, once.
func (p *Process) Done() chan error { return p.done }

// Signal sends one. After SIGSTOP none of its threads runs any more, which kill(2)
// does not wait for.
func (p *Process) Signal(s syscall.Signal) error {
	if err := syscall.Kill(p.PID(), s); err != nil || s != syscall.SIGSTOP {
		return err
	}
	for end := time.Now().Add(standstillLimit); !stopped(p.PID()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(p.PID(), syscall.SIGCONT) // or what waits for it would for ever
			return fmt.Errorf("process %d did not stop within %v", p.PID(), standstillLimit)
		}
	}
	return nil
}

// stopped reports whether all threads of a process are (T in proc(5)).
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range threads {
		b, e := os.ReadFile(stat)
		if e == nil && !bytes.Contains(b, []byte(") T ")) {
			return false
		}
	}
	return err == nil
}

// Stop ends it as Ctrl-C does, within limit, and returns how it ended.
func (p *Process) Stop(limit time.Duration) error {
	p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("it did not stop within %v", limit)
	}
}

// Kill ends it as a crash does.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Output runs a program to its end in a folder, with env alone as its
// environment, and returns what it printed.
func Output(dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), CommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("still running after %v", CommandTimeout)
	}
	return out.String(), err
}

// Tail returns the end of a file.
func Tail(file string) string {
	b, _ := os.ReadFile(file)
	return string(b[max(0, len(b)-tailBytes):])
}
