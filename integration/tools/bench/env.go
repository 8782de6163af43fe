package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// env is what every suite gets.
type env struct {
	ctx      context.Context
	dir      string // scratch folder on the disk that is measured
	bin      string // the ogw binary
	seconds  float64
	rows     []row
	profiles string // folder for CPU profiles of the server; "" takes none
	measured string // data folder of the server that is measured
	// rowsWanted is what -rows leaves of the rows.
	rowsWanted *regexp.Regexp
	// starts and pairs are how many a row of policies has.
	starts, pairs int
}

func (e *env) add(r row) {
	e.rows = append(e.rows, r)
	printRow(r)
}

func (e *env) span() time.Duration { return time.Duration(e.seconds * float64(time.Second)) }

func makeScratch(dir string) (string, error) {
	if dir == "" {
		dir = ".cache"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	d, err := os.MkdirTemp(dir, "bench-*")
	if err != nil {
		return "", err
	}
	return filepath.Abs(d)
}
