// Package mounts has the FUSE mounts of a process: those that it was asked for,
// those that it takes over from the process before, and the record of them, by which
// the next one makes again those that a stop, a crash or a restart of the machine
// ended.
//
//	admin API, ogw mount ── Table ── fusemount.Mounts
//	                          │ └─── holding ── holder process (mounts that survive)
//	                          └───── mounts.json (record.go)
//
// A mount is in the record until it is unmounted by somebody, or cannot come back. The
// record belongs to who holds the lock on mounts.lock: a process from before it reads it
// until it has closed its mounts, or a command while no process serves the folder. A
// command ends the mount first and strikes it out then: a process that starts in between finds
// it gone in the record, or has the lock, and is asked.
//
// Lock order: Table.restoring → Table.mu → holding.mu. Table.mu is never held while
// something is mounted or unmounted.
package mounts
