// Package diskspace refuses writes before the disk of a store is full, so that
// deletes go on, and holds a part of it that no other process can take.
//
//	Guard        how much is left for data, for metadata, for deletes
//	ReserveFile  gives way step by step when the disk is full all the same
//
// Lock order: ReserveFile.mu, then the calls of its disk.
package diskspace
