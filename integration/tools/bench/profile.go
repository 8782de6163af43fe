package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ogw/integration/testenv/cputime"
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
	name := strings.NewReplacer(" ", "-", ",", "").Replace(row) + ".prof"
	return cputime.Profile(filepath.Join(e.measured, "admin.sock"), filepath.Join(e.profiles, name), span)
}
