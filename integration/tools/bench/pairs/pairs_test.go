package pairs

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisy returns pairs of programs of which head does factor times the rate, on
// a machine whose own pace wanders in waves between half and all of it.
func noisy(seed uint64, n int, factor float64) []Pair {
	r := rand.New(rand.NewPCG(seed, 1))
	turn := func(i int, factor float64) Turn {
		pace := 0.75 + 0.25*math.Sin(float64(i)/5)
		rate := 1000 * pace * factor * math.Exp(0.05*r.NormFloat64())
		return Turn{Rate: rate, CPU: 1e6 / (1000 * factor) * math.Exp(0.02*r.NormFloat64())}
	}
	list := make([]Pair, n)
	for i := range list {
		list[i] = Pair{Base: turn(i, 1), Head: turn(i, factor)}
	}
	return list
}

// bound is what the checks below allow.
const bound = 0.03

// TestSame: of a program against itself, one row in 40 may lie outside of its
// interval on the bad side, and none so far that it is called worse.
func TestSame(t *testing.T) {
	missed, unclear := 0, 0
	for seed := range uint64(200) {
		list := noisy(seed, Wanted, 1)
		rate, cpu := Rate(list), CPU(list)
		if rate.OfRate(bound) == Worse || rate.OfRate(bound) == Better || cpu.OfCPU(bound) == Worse || cpu.OfCPU(bound) == Better {
			t.Errorf("seed %d: %+v %+v", seed, rate, cpu)
		}
		if cpu.OfCPU(bound) == Unclear {
			unclear++
		}
		if rate.Low > 1 || rate.High < 1 {
			missed++
		}
	}
	if unclear > 40 {
		t.Errorf("%d of 200 costs are unclear", unclear)
	}
	if missed > 20 { // 95 % of 200 are 10
		t.Errorf("%d of 200 intervals miss the truth", missed)
	}
}

// TestSlowed: a tenth less, or more, is found.
func TestSlowed(t *testing.T) {
	for seed := range uint64(200) {
		slow, fast := noisy(seed, Wanted, 0.88), noisy(seed, Wanted, 1.14)
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
	if r := CPU([]Pair{{Base: Turn{Rate: 1}, Head: Turn{Rate: 1}}}); r != (Ratio{}) {
		t.Errorf("no CPU: %+v", r)
	}
}
