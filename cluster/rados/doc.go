// Package rados keeps the data of a store in a pool of a Ceph cluster, where several
// processes share it. It is the Blobs half of an engine only, and knows a pool by an interface
// (Pool): package librados is the one of Ceph, which needs its library, and tests have one
// in memory.
//
//	Create ──► entry of the index         under way while the caller writes
//	Write  ──► part buffer ──► objects of parts, partsUnderWay at a time; the first one waits
//	Commit ──► all of these are there ──► head, with the first part
//	ReadAt ──► head and frames in one request; or frames of other parts, verified
//
// # Objects
//
// All are in the namespace of the store.
//
//	"blob/" ID               head of a blob, and the frames of its first 4 MiB
//	"part/" ID . TOKEN . N   frames of the N-th 4 MiB, N from 1 on, decimal
//	"index/" SHARD           pairs, one for each writer of a blob; SHARD is 2 hexadecimal digits
//	"store"                  ID of the store, and how often it was claimed
//	"probe/" TOKEN           what Open tries the pool with, then removes
//
//	pair of the index: ID . TOKEN = when it was written, in seconds (8 bytes, big-endian)
//	head:              "ogwblob1" ‖ ID (16) ‖ TOKEN (8) ‖ length (8) ‖ time in ns (8) ‖ CRC64NVME of these (8)
//
// ID is 32 hexadecimal digits in names, TOKEN 16: a random number of the writer. Frames are
// those of package frame. A part holds 4 MiB as Ceph's own clients have it, so that a blob is on
// many OSDs, and each object is recovered soon.
//
// # A blob exists when its head does
//
// The head is made last, in one step, under the condition that there is none. What is read
// of later parts goes by the token in it, so that of two writers each has its own
// parts, and none replaces what the other one wrote. A client remembers heads of blobs of
// several parts (heads); a wrong one names parts that are gone, and is read again.
//
// IDs of blobs come from the metadata, and return when an older state of these is restored:
// the object "store" counts how often the store was opened (Claim), as in package s3.
//
// # The index
//
// RADOS lists objects by hash. To list blobs in order of their IDs from one on would be to list
// all objects of the pool each time, and the namespace lists a few hundred at a time. So the
// names of blobs are in the pairs of shards objects, which List merges. An entry is written
// before the head, and removed after it. One without a head is of a writer that is
// at work, or is gone: List skips it, and removes it with its parts once it is older than
// staleEntry. A writer that is at work has it written anew after entryLife, and gives up
// after writerLimit without doing so: no clock has to be right by less than half a day.
//
// The index takes one more round trip for a blob, which Create begins, so that it
// runs while the bytes come. A pool that is erasure-coded has no pairs: Open refuses it.
//
// # What is left behind
//
// A process that ends between its entry and its head leaves both without a blob, until a
// listing finds them. A commit whose outcome is unknown may have made a blob, or may come to
// make one, which List shows then. A delete that ends half-way leaves no blob, and parts
// with an entry.
//
// # Limits
//
// A writer holds 4 parts at the most. 50 million blobs are 200,000 pairs in each shard,
// of which Ceph begins to warn.
//
// Locks: heads.mu and sends.mu, leaves; lastCheck.mu, held while the pool is asked whether it
// answers.
package rados
