package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile takes a CPU profile of the server while run measures, and keeps it
// under the row's name.
func (e *env) profile(row string, span time.Duration, run func() (float64, error)) (float64, error) {
	if e.profiles == "" || e.measured == "" {
		return run()
	}
	got := make(chan error, 1)
	go func() { got <- e.fetchProfile(row, span) }()
	v, err := run()
	if e := <-got; err == nil && e != nil {
		err = fmt.Errorf("profile: %w", e)
	}
	return v, err
}

func (e *env) fetchProfile(row string, span time.Duration) error {
	socket := filepath.Join(e.measured, "admin.sock")
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	seconds := max(1, int(span.Seconds()))
	resp, err := c.Get(fmt.Sprintf("http://ogw/debug/pprof/profile?seconds=%d", seconds))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	name := strings.NewReplacer(" ", "-", ",", "").Replace(row) + ".prof"
	f, err := os.Create(filepath.Join(e.profiles, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
