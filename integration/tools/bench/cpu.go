package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"ogw/integration/testenv/cputime"
)

// cpuMeter sums what processes spend on operations.
type cpuMeter struct {
	server, client time.Duration
	ops            float64
}

// measure runs g and counts what its processes spent.
func (m *cpuMeter) measure(g gauge, span time.Duration) (float64, error) {
	if g.pid == 0 {
		return g.run(span)
	}
	server, client, err := g.processTimes()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	v, err := g.run(span)
	if err != nil {
		return 0, err
	}
	m.ops += v * time.Since(start).Seconds()
	serverAfter, clientAfter, err := g.processTimes()
	m.server += serverAfter - server
	m.client += clientAfter - client
	return v, err
}

// processTimes are those of the server and the client, if it has a process.
func (g gauge) processTimes() (server, client time.Duration, err error) {
	if server, err = cputime.Process(g.pid); err != nil || g.client == 0 {
		return server, 0, err
	}
	client, err = cputime.Process(g.client)
	return server, client, err
}

// perOp is the server's, in microseconds; 0 is unknown.
func (m *cpuMeter) perOp() float64 { return m.microseconds(m.server) }

// clientPerOp is the client's, in microseconds; 0 is unknown.
func (m *cpuMeter) clientPerOp() float64 { return m.microseconds(m.client) }

func (m *cpuMeter) microseconds(spent time.Duration) float64 {
	if m.ops == 0 {
		return 0
	}
	return float64(spent.Microseconds()) / m.ops
}

// resident is the memory of a process, in bytes.
func resident(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	const pages = 1 // after the size
	fields := strings.Fields(string(b))
	if len(fields) <= pages {
		return 0, errors.New("/proc/PID/statm is too short")
	}
	n, err := strconv.Atoi(fields[pages])
	return n * os.Getpagesize(), err
}
