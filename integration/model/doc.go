// Package model has the rules by which gateways use a store beside one another as models
// that are checked in all their states (Promela, spin): with the rules nothing is lost, and
// without any one of them something is.
package model
