// Package adversary holds attacks on the real binary. Each test is one way in
// that stood open once, or a border between two users, and passes when the
// attack fails. An attack that needs a check of its own power does what the
// attacker may do right beside it: a server that refuses everybody passes
// nothing here.
package adversary
