// Package fserr is the closed set of errors of the namespace and of the packages
// that it is made of. Package vfs shows them under its own names, and says what
// doors make of them; what lies below vfs returns them wrapped with %w.
//
//	engine's error ── Map ──► one of this set, the engine's chain kept
package fserr
