// Package peers has the rules by which gateways use a store beside one another as a model
// that is checked in all its states (Promela, spin): with the rules nothing is lost,
// and nothing old is answered from memory; without any one of them something is.
package peers
