// Package s3 keeps the data of a store in a bucket of any S3 endpoint, where
// several processes share it. It is the Blobs half of an engine only.
//
//	Write  ──► part buffer ──► UploadPart, one under way, while the next fills
//	Commit ──► PutObject                if all fits into one part
//	       └─► CompleteMultipartUpload  else; both with If-None-Match: *
//	ReadAt ──► GetObject with a range of whole frames, verified
//
// # Objects
//
//	PREFIX "blob/" ID    a blob; ID is 32 hexadecimal digits, so that keys sort as IDs
//	PREFIX "probe/" N    what Open tries the endpoint with, then deletes
//	PREFIX "store"       ID of the store, 16 hexadecimal digits
//	PREFIX "claim/" N    empty: how often the store was claimed, 16 hexadecimal digits
//
// An object is a row of frames (package frame), so that a read of any range is one request.
//
// # Blobs are never replaced
//
// Each object is written under the condition that there is none. Open tries
// whether the endpoint heeds this for both requests that make objects, and
// refuses one that does not. An answer can be lost while the object was made,
// and the request that is sent again is then refused: each writer stores a
// random number with its object (metadata Ogw-Write), and one that is refused
// looks whose number is there.
//
// IDs of blobs come from the metadata, and return when an older state of these is
// restored. So the bucket counts how often a store was opened (Claim), which it
// does not forget with them: a count above what the metadata know has the
// namespace skip all numbers that may have been used.
//
// # What is left behind
//
// A process that ends between its first part and Commit leaves an upload, which
// no listing of objects shows. Open aborts those that are older than staleUpload
// by the endpoint's clock. A commit whose answer never came may have made a
// blob, which List shows.
//
// # Failure
//
// A request is tried maxTries times; a write that the endpoint refuses since it has too much to
// do, or is not there, for patience, but by Open, whose caller decides whether to wait. One that moves no byte for stallTimeout has
// failed, and none takes longer than requestTimeout, its tries included; the
// error is then ErrUnavailable. A bucket that is gone, credentials that are
// no longer good, or a 404 of somebody who is not S3, as a proxy before the endpoint,
// are ErrUnavailable, too, never ErrNotFound.
//
// # Limits
//
// A writer holds two parts of 8 MiB at the most. Deletes do not free space in a
// bucket that keeps versions: Open refuses it. An endpoint that divides a bucket
// by prefixes of keys has all new blobs in one division.
//
// Locks: body.mu, held while bytes are copied, and lastCheck.mu, held while the
// bucket is asked whether it answers. Both are leaves.
package s3
