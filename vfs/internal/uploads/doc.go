// Package uploads makes objects of parts. An upload is a content in the making: its
// number names the blobs of all its parts, and becomes the content of the object, so
// that completing moves no data.
//
//	'm' bucket, key, upload → record.Upload   'M' upload → that key
//	'p' upload, number      → part; numbers from record.GarbagePart on are parts that
//	                          were replaced and wait for the collector
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
// What becomes an object, under which conditions, and whose it is, is the Publisher's.
// There are no locks, and nothing is kept in memory.
package uploads
