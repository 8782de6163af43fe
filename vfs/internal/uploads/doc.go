// Package uploads makes objects of parts. An upload is a content in the making: its
// number names the blobs of all its parts, and becomes the content of the object, so
// that completing moves no data.
//
//	'm' bucket, key, upload → record.Upload   'M' upload → that key
//	'p' upload, number      → part; numbers from record.GarbagePart on are parts that
//	                          were replaced and wait for the collector
//	'c' slot                → what the upload became that was completed last, of those that
//	                          share a slot: record.Completed
//	'e' upload, offset      → extents: none until Complete, which writes them
//	                          in front of its last transaction if they are many
//
// Every change of a part reads the 'm' record, and every end of the upload
// removes it: what comes later fails and leaves nothing. A Complete that
// writes extents in several transactions counts up stage in the record, and
// each of them checks it; a part that arrives meanwhile counts it up too.
//
//	Begin ── Put, Copy ── Complete: measure ─┬─ few extents: Publisher, with assemble
//	                 └─── Abort, AbortAll    └─ many: stage in batches, then Publisher
//
// A Complete that is sent again, since its answer was lost, finds no upload, and is answered
// from the 'c' record, which the last transaction wrote: the object may be overwritten or
// gone, or not be readable by who asks. That needs the whole ID, with its token, and the
// right to complete the upload: a number alone can be guessed. The table has as many slots
// as keys of two bytes, so nothing has to be collected, whichever version wrote it.
//
// What becomes an object, under which conditions, and whose it is, is the Publisher's.
// There are no locks, and nothing is kept in memory.
package uploads
