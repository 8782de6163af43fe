package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// rounds is how often a figure and its limits take turns: on a shared machine
// noise comes in waves, and so it meets all of them.
const rounds = 3

// pair is a figure and what bounds it. The lowest limit counts.
type pair struct {
	name   string
	figure gauge
	limits []gauge
	bytes  int     // of one operation: the note shows MiB/s; 0 for none
	target float64 // smallest ratio that we want
}

// measure runs p and adds its row, unless -rows leaves it out.
func (e *env) measure(p pair) error {
	if !e.rowsWanted.MatchString(p.name) {
		return nil
	}
	span := e.span() / rounds
	limits := make([][]float64, len(p.limits))
	limitCPU := make([]cpuMeter, len(p.limits))
	var figures []float64
	var figureCPU cpuMeter
	for range rounds {
		for i, l := range p.limits {
			v, err := l.turn(&limitCPU[i], span, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			limits[i] = append(limits[i], v)
		}
		v, err := p.figure.turn(&figureCPU, span, func(run func() (float64, error)) (float64, error) {
			return e.profile(p.name, span, run)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if v == 0 {
			return errors.New(p.name + ": nothing was done in the time given")
		}
		figures = append(figures, v)
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
	}
	r := row{Name: p.name, Value: mean(figures), Unit: "op/s", Samples: figures, Target: p.target,
		CPU: figureCPU.perOp(), ClientCPU: figureCPU.clientPerOp()}
	r.Limit = math.Inf(1)
	for i, l := range p.limits {
		v := mean(limits[i])
		r.Limits = append(r.Limits, limit{Name: l.name, Value: v, CPU: limitCPU[i].perOp()})
		if v < r.Limit {
			r.Limit, r.LimitName, r.LimitCPU = v, l.name, limitCPU[i].perOp()
		}
	}
	if len(p.limits) == 0 {
		r.Limit = 0
	}
	if p.bytes > 0 {
		r.Note = fmt.Sprintf("%.0f MiB/s", r.Value*float64(p.bytes)/mib)
	}
	switch {
	case r.CPU > 0 && r.LimitCPU > 0:
		r.Note += fmt.Sprintf(" CPU %s (bare %s) us/op", number(r.CPU), number(r.LimitCPU))
	case r.CPU > 0:
		r.Note += fmt.Sprintf(" CPU %s us/op", number(r.CPU))
	}
	if r.ClientCPU > 0 {
		r.Note += fmt.Sprintf(", client's %s", number(r.ClientCPU))
	}
	if lo, hi := slices.Min(figures), slices.Max(figures); hi > noisy*lo {
		r.Note += fmt.Sprintf(" (noisy: %s to %s)", number(lo), number(hi))
	}
	e.add(r)
	return nil
}

// turn measures g once; around, if there is one, calls the measurement.
func (g gauge) turn(m *cpuMeter, span time.Duration, around func(run func() (float64, error)) (float64, error)) (v float64, err error) {
	if g.before != nil {
		if err := g.before(span); err != nil {
			return 0, err
		}
	}
	run := func() (float64, error) { return m.measure(g, span) }
	if around != nil {
		v, err = around(run)
	} else {
		v, err = run()
	}
	if err == nil && g.after != nil {
		err = g.after()
	}
	return v, err
}

// noisy is the ratio between rounds from which a row says so.
const noisy = 1.5

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
