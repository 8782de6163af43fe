// Package doors drives one namespace through each of its doors in the same
// words, so that suites can mix them:
//
//	Door     whole files: S3, REST, FUSE, NFS, Go
//	├ Posix  directories and names besides: FUSE, NFS, Go
//	└ Object DELETE besides: S3, REST, Go
//	  └ Store  the rest of S3's object operations: S3, Go
//
// Paths are "bucket/key". A door may be used by several goroutines at once.
package doors
