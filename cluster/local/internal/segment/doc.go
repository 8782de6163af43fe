// Package segment appends records to files of a fixed length, many in one write,
// and makes these files ahead.
//
//	Append ─→ a place, in order ─→ queue ─→ up to four writes at a time ─→ durable
//	             │
//	             └ allocator: segments that were made ahead, or were emptied and
//	               are written again under a new number
//
// Each of these writes has an open file of its own, which is told of the errors of its pages.
//
// Which records live, the index of blobs knows: AddLive and Indexed inform the Store
// of it. Who collects a segment asks Collectable, moves what lives, and gives the
// file back by Forget, and then Adopt or a removal.
//
// Lock order: Store.mu, then allocator.mu.
package segment
