// Package metered decorates a cluster with Prometheus metrics: what each call
// to the engine takes, how much data moves, what fails, and how often
// transactions run again.
//
//	vfs ── metered ── engine
//
// It changes nothing else: errors, contexts and order pass through.
package metered
