// Package cputime tells what benchmarks cost: the processor time of processes and of the
// whole machine, and profiles of a server.
package cputime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat and /proc/PID/stat (USER_HZ), the same on all Linux.
const tick = time.Second / 100

// Process returns the user and system time of a process.
func Process(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in brackets may hold anything.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	const user, system = 11, 12 // fields 14 and 15, counted from the state
	return sum(strings.Fields(rest), user, system)
}

// Machine returns the time that all processors were not idle.
func Machine() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	const user, nice, system, irq, softirq = 1, 2, 3, 6, 7 // proc(5)
	return sum(strings.Fields(line), user, nice, system, irq, softirq)
}

func sum(fields []string, which ...int) (time.Duration, error) {
	var ticks int64
	for _, i := range which {
		if i >= len(fields) {
			return 0, errors.New("a line of /proc is too short")
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// Profile stores a CPU profile of the server with this administration socket in a file.
func Profile(socket, file string, span time.Duration) error {
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	resp, err := c.Get(fmt.Sprintf("http://ogw/debug/pprof/profile?seconds=%d", max(1, int(span.Seconds()))))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
