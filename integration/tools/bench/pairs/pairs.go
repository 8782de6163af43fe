// Package pairs decides what turns of two programs say: base and head measured
// one right after the other, so that what else the machine does meets both. The
// ratio within a pair counts, the median of the ratios is the figure, and its
// interval is that of order statistics, which assumes nothing of how they are
// distributed.
package pairs

import (
	"golang.org/x/perf/benchmath"
)

const (
	// Wanted is how many pairs a row has: of 20, the interval lies between the
	// 6th and the 15th.
	Wanted = 20
	// Min is the fewest that have an interval: from the lowest to the highest.
	Min = 6
	// confidence of the intervals.
	confidence = 0.95
)

// Turn is one measurement of one program.
type Turn struct {
	Rate float64 `json:"rate"`   // operations per second
	CPU  float64 `json:"cpu_us"` // of the server, microseconds per operation; 0: unknown
}

// Pair are two turns, one right after the other, in any order.
type Pair struct {
	Base Turn `json:"base"`
	Head Turn `json:"head"`
}

// Ratio is the median of head/base, and the interval around it.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Verdict is what a ratio says, within a bound.
type Verdict string

// The verdicts. A row may be called unchanged only where the interval excludes
// that it got worse by more than the bound.
const (
	Worse     Verdict = "WORSE"     // by more than the bound, certainly
	Better    Verdict = "better"    // by more than the bound, certainly
	Unchanged Verdict = "unchanged" // or better: not worse by more than the bound
	Unclear   Verdict = "unclear"   // the interval is too wide to say
	Unknown   Verdict = ""          // was not measured
)

// Rate is the ratio of rates; more is better.
func Rate(list []Pair) Ratio {
	return ratio(list, func(t Turn) float64 { return t.Rate })
}

// CPU is the ratio of what an operation costs; less is better.
func CPU(list []Pair) Ratio {
	return ratio(list, func(t Turn) float64 { return t.CPU })
}

func ratio(list []Pair, of func(Turn) float64) Ratio {
	var values []float64
	for _, p := range list {
		if base, head := of(p.Base), of(p.Head); base > 0 && head > 0 {
			values = append(values, head/base)
		}
	}
	if len(values) < Min {
		return Ratio{}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence)
	return Ratio{Median: s.Center, Low: s.Lo, High: s.Hi}
}

// OfRate judges a ratio of rates.
func (r Ratio) OfRate(bound float64) Verdict {
	switch {
	case r.Median == 0:
		return Unknown
	case r.High < 1-bound:
		return Worse
	case r.Low > 1+bound:
		return Better
	case r.Low >= 1-bound:
		return Unchanged
	}
	return Unclear
}

// OfCPU judges a ratio of costs.
func (r Ratio) OfCPU(bound float64) Verdict {
	switch {
	case r.Median == 0:
		return Unknown
	case r.Low > 1+bound:
		return Worse
	case r.High < 1-bound:
		return Better
	case r.High <= 1+bound:
		return Unchanged
	}
	return Unclear
}
