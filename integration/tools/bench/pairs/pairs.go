// Package pairs decides what turns of two programs say.
//
// A pair is one turn of each program, one right after the other, so that what else
// the machine does meets both. The ratio within a pair counts, by its logarithm.
//
// Pairs of the same two processes are not independent: a process keeps what chance
// gave it when it started (physical pages, seeds of hash tables, the pace of its
// garbage collector), and that is worth 5 to 10 % between two starts of one binary.
// However many pairs there are of a start, they agree on the ratio of that start.
// So both programs are started many times, the pairs of a start come to one value,
// their median, and what is told of the programs is told by the values of the starts,
// which are independent. Their differences hold those within starts, too: the interval
// is honest with one pair of each start, and more pairs make it narrower only as far
// as turns are what differs.
//
// A value differs from the truth by what chance gave one program more than the other.
// If chance does not choose between the programs, that is as often above as below
// by as much: this symmetry is all that the signed-rank statistic of Wilcoxon assumes. Its
// estimate, of Hodges and Lehmann, is the median of the means of every two values, and
// its interval is exact. The interval of order statistics around the plain median assumes
// even less, and needs half as many starts again to be as narrow.
package pairs

import (
	"math"
	"slices"
)

const (
	// Starts is how many a row has.
	Starts = 20
	// MinStarts is the fewest that have an interval: from the lowest value to
	// the highest.
	MinStarts = 6
	// OfStart is how many pairs a start has.
	OfStart = 6
	// outside is what of the distribution lies beyond each end of an interval:
	// the confidence is 95 %.
	outside = 0.025
)

// Turn is one measurement of one program.
type Turn struct {
	Rate float64 `json:"rate"`   // operations per second
	CPU  float64 `json:"cpu_us"` // of the server, microseconds per operation; 0: unknown
}

// Pair are two turns, one right after the other, in an order that chance gave.
type Pair struct {
	Base Turn `json:"base"`
	Head Turn `json:"head"`
}

// Start are the pairs of one process of each program.
type Start []Pair

// Ratio is head/base: the median, in the sense of Hodges and Lehmann, and the
// interval around it.
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
func Rate(starts []Start) Ratio {
	return ratio(starts, func(t Turn) float64 { return t.Rate })
}

// CPU is the ratio of what an operation costs; less is better.
func CPU(starts []Start) Ratio {
	return ratio(starts, func(t Turn) float64 { return t.CPU })
}

func ratio(starts []Start, of func(Turn) float64) Ratio {
	var values []float64
	for _, s := range starts {
		var logs []float64
		for _, p := range s {
			if base, head := of(p.Base), of(p.Head); base > 0 && head > 0 {
				logs = append(logs, math.Log(head/base))
			}
		}
		if len(logs) > 0 {
			slices.Sort(logs)
			values = append(values, median(logs))
		}
	}
	if len(values) < MinStarts {
		return Ratio{}
	}
	means := walsh(values)
	cut := signedRank(len(values))
	return Ratio{
		Median: math.Exp(median(means)),
		Low:    math.Exp(means[cut]),
		High:   math.Exp(means[len(means)-1-cut]),
	}
}

// median is that of values in order.
func median(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// walsh returns the means of every two values, and of each with itself, in order.
func walsh(values []float64) []float64 {
	var means []float64
	for i, x := range values {
		for _, y := range values[i:] {
			means = append(means, (x+y)/2)
		}
	}
	slices.Sort(means)
	return means
}

// signedRank returns how many of the means of n values lie beyond each end of the
// interval: the most for which the sum of the ranks of the positive values, each of
// the ranks 1 to n with an even chance, is as low with no more than that probability.
func signedRank(n int) int {
	// chance[t] is the probability of the sum t.
	chance := make([]float64, n*(n+1)/2+1)
	chance[0] = 1
	for rank := 1; rank <= n; rank++ {
		for t := len(chance) - 1; t >= 0; t-- {
			chance[t] /= 2
			if t >= rank {
				chance[t] += chance[t-rank] / 2
			}
		}
	}
	sum, cut := chance[0], 0
	for ; sum+chance[cut+1] <= outside; cut++ {
		sum += chance[cut+1]
	}
	return cut
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
