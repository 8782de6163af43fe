package pairs

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noise is how much turns, and starts of one program, differ from one another: the
// standard deviation of the logarithm.
type noise struct{ turn, start float64 }

// usual is about what a quiet machine shows.
var usual = noise{turn: 0.05, start: 0.02}

// measured returns starts of programs of which head does factor times the rate, on a
// machine whose own pace wanders in waves between half and all of it.
func measured(seed uint64, n noise, factor float64) []Start {
	r := rand.New(rand.NewPCG(seed, 1))
	starts := make([]Start, Starts)
	for i := range starts {
		base, head := math.Exp(n.start*r.NormFloat64()), factor*math.Exp(n.start*r.NormFloat64())
		for k := range OfStart {
			pace := 0.75 + 0.25*math.Sin(float64(OfStart*i+k)/5)
			turn := func(speed float64) Turn {
				return Turn{
					Rate: 1000 * pace * speed * math.Exp(n.turn*r.NormFloat64()),
					CPU:  1000 / speed * math.Exp(n.turn*r.NormFloat64()),
				}
			}
			starts[i] = append(starts[i], Pair{Base: turn(base), Head: turn(head)})
		}
	}
	return starts
}

// bound is what the checks below allow.
const bound = 0.03

// samples is how often each of the checks below is repeated.
const samples = 400

// TestSame: of a program against itself, one interval in 20 may miss the truth, also
// where starts differ much more than turns do, and the other way round.
func TestSame(t *testing.T) {
	for _, n := range []noise{usual, {turn: 0.01, start: 0.07}, {turn: 0.2, start: 0}} {
		missed, wrong := 0, 0
		for seed := range uint64(samples) {
			list := measured(seed, n, 1)
			rate, cpu := Rate(list), CPU(list)
			if rate.Low > 1 || rate.High < 1 {
				missed++
			}
			if rate.OfRate(bound) == Worse || cpu.OfCPU(bound) == Worse {
				wrong++
			}
		}
		t.Logf("%+v: %d of %d intervals miss the truth, %d say worse", n, missed, samples, wrong)
		if missed > 2*samples/20 {
			t.Errorf("%+v: %d of %d intervals miss the truth", n, missed, samples)
		}
		if wrong > samples/100 {
			t.Errorf("%+v: %d of %d are called worse", n, wrong, samples)
		}
	}
}

// TestPairsOfOneStart: turns that agree say nothing of another start. An interval of
// all pairs, as if they were independent, would miss the truth most of the time here.
func TestPairsOfOneStart(t *testing.T) {
	missed := 0
	for seed := range uint64(samples) {
		var single []Start
		for _, s := range measured(seed, noise{turn: 0.01, start: 0.05}, 1)[:3] {
			for _, p := range s {
				single = append(single, Start{p})
			}
		}
		if r := Rate(single); r.Low > 1 || r.High < 1 {
			missed++
		}
	}
	if missed < samples/4 {
		t.Errorf("pairs of three starts: only %d of %d intervals miss the truth: what are starts for?", missed, samples)
	}
}

// TestSlowed: a tenth less, or more, is found.
func TestSlowed(t *testing.T) {
	for seed := range uint64(samples) {
		slow, fast := measured(seed, usual, 0.88), measured(seed, usual, 1.14)
		if v := Rate(slow).OfRate(bound); v != Worse {
			t.Errorf("seed %d: slowed: %s %+v", seed, v, Rate(slow))
		}
		if v := CPU(slow).OfCPU(bound); v != Worse {
			t.Errorf("seed %d: dearer: %s %+v", seed, v, CPU(slow))
		}
		if v := CPU(fast).OfCPU(bound); v != Better {
			t.Errorf("seed %d: cheaper: %s %+v", seed, v, CPU(fast))
		}
	}
}

// TestUnchanged: of a program against itself most rows say so.
func TestUnchanged(t *testing.T) {
	unclear := 0
	for seed := range uint64(samples) {
		if Rate(measured(seed, usual, 1)).OfRate(bound) == Unclear {
			unclear++
		}
	}
	if unclear > samples/4 {
		t.Errorf("%d of %d are unclear", unclear, samples)
	}
}

// TestSignedRank compares with published tables of the statistic: two-sided, 5 %.
func TestSignedRank(t *testing.T) {
	for n, want := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137} {
		if got := signedRank(n); got != want {
			t.Errorf("%d values: %d, want %d", n, got, want)
		}
	}
}

// TestRatio: six values, the estimate and the interval by hand.
func TestRatio(t *testing.T) {
	var starts []Start
	for _, rate := range []float64{1, 2, 4, 8, 16, 32} {
		p := Pair{Base: Turn{Rate: 1}, Head: Turn{Rate: rate}}
		stalled := Pair{Base: Turn{Rate: 1}, Head: Turn{Rate: rate / 1000}}
		starts = append(starts, Start{p, stalled, p})
	}
	got := Rate(starts)
	for _, v := range [][2]float64{{got.Median, math.Sqrt(4 * 8)}, {got.Low, 1}, {got.High, 32}} {
		if math.Abs(v[0]/v[1]-1) > 1e-9 {
			t.Errorf("%+v", got)
		}
	}
	if r := Rate(starts[1:]); r != (Ratio{}) {
		t.Errorf("five starts: %+v", r)
	}
	if r := CPU(starts); r != (Ratio{}) {
		t.Errorf("no CPU: %+v", r)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		r         Ratio
		rate, cpu Verdict
	}{
		{Ratio{1, 0.98, 1.02}, Unchanged, Unchanged},
		{Ratio{0.9, 0.85, 0.96}, Worse, Better},
		{Ratio{1.1, 1.04, 1.2}, Better, Worse},
		{Ratio{1, 0.9, 1.1}, Unclear, Unclear},
		{Ratio{1.05, 0.98, 1.2}, Unchanged, Unclear},
		{Ratio{0.95, 0.8, 1.02}, Unclear, Unchanged},
		{Ratio{}, Unknown, Unknown},
	} {
		if rate, cpu := c.r.OfRate(bound), c.r.OfCPU(bound); rate != c.rate || cpu != c.cpu {
			t.Errorf("%+v: %s %s", c.r, rate, cpu)
		}
	}
}
