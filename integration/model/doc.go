// Package model drives random operations through all doors of a namespace at
// once and compares every answer with a model that is simple enough to be
// right by inspection.
//
//	Worker ── one step ──> a random door
//	   └───── the same ──> Tree (docs/semantics.md in its simplest form)
//
// Each Worker has a subtree of its own, so that it knows what every answer
// must be; workers run side by side, several of them in one bucket.
package model
