package main

import (
	"fmt"
	"time"
)

// gauge is something whose rate can be measured for a while.
type gauge struct {
	name string
	run  func(span time.Duration) (perSecond float64, err error)
	pid  int // of the process that does the work, if it is not this one
	// client is the process that asks for it, if it is not this one.
	client int
	// before and after are outside of what is measured; nil is nothing.
	before func(span time.Duration) error
	after  func() error
}

// fixed is a limit that is a number.
func fixed(name string, v float64) gauge {
	return gauge{name: name, run: func(time.Duration) (float64, error) { return v, nil }}
}

// part is a share of another limit.
func part(share float64, g gauge) gauge {
	return gauge{name: fmt.Sprintf("%.0f %% of %s", 100*share, g.name), run: func(d time.Duration) (float64, error) {
		v, err := g.run(d)
		return share * v, err
	}}
}
