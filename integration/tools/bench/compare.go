package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// compareReports turns two reports into the format of Go's benchmarks, for
// benchstat (make bench-compare), and prints the names of the files.
func compareReports(files []string) error {
	if len(files) != 2 {
		return errors.New("-compare wants two files that -json wrote: the old and the new")
	}
	for _, name := range files {
		text, err := benchFormat(name)
		if err != nil {
			return err
		}
		out := strings.TrimSuffix(name, filepath.Ext(name)) + ".txt"
		if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Println(out)
	}
	return nil
}

// benchFormat writes a report as lines of the Go benchmark format, one for
// each sample.
func benchFormat(name string) (string, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	var b strings.Builder
	for _, row := range r.Rows {
		samples := row.Samples
		if len(samples) == 0 {
			samples = []float64{row.Value}
		}
		title := strings.Map(func(c rune) rune {
			if c == ' ' || c == ',' {
				return '_'
			}
			return c
		}, row.Name)
		for _, v := range samples {
			fmt.Fprintf(&b, "Benchmark%s 1 %g %s\n", title, v, row.Unit)
		}
		if row.Limit != 0 {
			fmt.Fprintf(&b, "Benchmark%s 1 %g ratio\n", title, row.ratio())
		}
	}
	return b.String(), nil
}
