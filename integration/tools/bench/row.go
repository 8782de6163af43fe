package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// row is one figure beside its limit.
type row struct {
	Name      string    `json:"name"`
	Value     float64   `json:"value"`
	Unit      string    `json:"unit"`
	Samples   []float64 `json:"samples,omitempty"` // Value is their mean
	LimitName string    `json:"limit_name,omitempty"`
	Limit     float64   `json:"limit,omitempty"`  // the lowest of Limits
	Limits    []limit   `json:"limits,omitempty"` // all that were measured beside it
	Target    float64   `json:"target,omitempty"` // smallest ratio that we want
	Note      string    `json:"note,omitempty"`
	// CPU is what the server, and what the lowest limit's, spent on an
	// operation, in microseconds: it hardly depends on what else runs.
	CPU      float64 `json:"cpu_us,omitempty"`
	LimitCPU float64 `json:"limit_cpu_us,omitempty"`
	// ClientCPU is what the client spent on one of the figure's operations,
	// where it is a process of its own: it may be what limits the figure.
	ClientCPU float64 `json:"client_cpu_us,omitempty"`
}

type limit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	CPU   float64 `json:"cpu_us,omitempty"`
}

// ratio is how much of the limit was reached; 0 without a limit. Times and
// memory are better small, rates large.
func (r row) ratio() float64 {
	switch {
	case r.Limit == 0 || r.Value == 0:
		return 0
	case r.Unit == "s" || r.Unit == "ms" || r.Unit == "MiB":
		return r.Limit / r.Value
	default:
		return r.Value / r.Limit
	}
}

// report is what -json writes.
type report struct {
	Time string `json:"time"`
	Go   string `json:"go"`
	CPUs int    `json:"cpus"`
	Rows []row  `json:"rows"`
}

func printRow(r row) {
	line := fmt.Sprintf("  %-46s %10s %-5s", r.Name, number(r.Value), r.Unit)
	if r.Limit != 0 {
		line += fmt.Sprintf(" %3.0f %% of %s (%s)", 100*r.ratio(), r.LimitName, number(r.Limit))
		switch {
		case r.Target == 0:
		case r.ratio() >= r.Target:
			line += fmt.Sprintf(", target %.0f %%: met", 100*r.Target)
		default:
			line += fmt.Sprintf(", target %.0f %%: MISSED", 100*r.Target)
		}
	}
	if r.Note != "" {
		line += "  " + r.Note
	}
	fmt.Println(line)
}

func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

func writeReport(path string, rows []row) error {
	b, err := json.MarshalIndent(report{
		Time: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), CPUs: runtime.NumCPU(), Rows: rows,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
