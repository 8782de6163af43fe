// Package engines runs the contract of package cluster against the servers that
// its engines speak to: several clients of one store, servers that end or stand
// still, answers that get lost, bytes that change.
package engines
