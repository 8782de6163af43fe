// Package mounts has the FUSE mounts of a process: those that it was asked for,
// those that it takes over from the process before, and the record of them that
// the next one reads after a crash.
//
//	admin API, ogw mount ── Table ── fusemount.Mounts
//	                          │ └─── holding ── holder process (mounts that survive)
//	                          └───── mounts.json (record.go)
//
// Lock order: Table.mu → holding.mu. The first is never held while something is
// mounted or unmounted.
package mounts
