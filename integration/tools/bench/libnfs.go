package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// libnfsHeader reports whether the library that libnfsload needs is there.
const libnfsHeader = "/usr/include/nfsc/libnfs.h"

// buildLibnfsload compiles the program that drives a server through libnfs.
func buildLibnfsload(e *env) (string, error) {
	if _, err := os.Stat(libnfsHeader); err != nil {
		return "", errors.New("libnfs-dev is not installed")
	}
	bin := filepath.Join(e.dir, "libnfsload")
	out, err := exec.CommandContext(e.ctx, "cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-o", bin,
		"integration/tools/bench/libnfsload/main.c", "-lnfs", "-pthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return bin, nil
}

// libnfsload is one such program, connected to one server.
type libnfsload struct {
	cmd *exec.Cmd
	in  io.Closer
	w   *bufio.Writer
	r   *bufio.Reader
}

// startLibnfsload mounts url with several connections.
func startLibnfsload(bin, url string, connections int) (*libnfsload, error) {
	cmd := exec.Command(bin, url, fmt.Sprint(connections))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &libnfsload{cmd: cmd, in: in, w: bufio.NewWriter(in), r: bufio.NewReader(out)}
	if _, err := l.answer(); err != nil { // that it is ready
		l.stop()
		return nil, err
	}
	return l, nil
}

func (l *libnfsload) stop() {
	l.in.Close()
	_ = l.cmd.Wait() // it has nothing to lose
}

// loadResult is what it says of a job.
type loadResult struct {
	Ops     int     `json:"ops"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error"`
}

func (r loadResult) rate() float64 { return float64(r.Ops) / r.Seconds }

// do has a job done: the words of main.c, such as "create dir limit=100".
func (l *libnfsload) do(words ...string) (loadResult, error) {
	fmt.Fprintln(l.w, strings.Join(words, " "))
	if err := l.w.Flush(); err != nil {
		return loadResult{}, fmt.Errorf("libnfsload: %w", err)
	}
	r, err := l.answer()
	if err != nil {
		return r, fmt.Errorf("%s: %w", words[0], err)
	}
	return r, nil
}

var errLoad = errors.New("libnfs failed")

func (l *libnfsload) answer() (loadResult, error) {
	var r loadResult
	line, err := l.r.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("libnfsload ended: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("libnfsload says %q: %w", line, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%w: %s", errLoad, r.Error)
	}
	return r, nil
}
