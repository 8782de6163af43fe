// Package fsck finds what is wrong in a store, and mends what is safe to mend. It
// runs beside other work.
//
//	check.go      the steps, what they find, how it is mended
//	names.go      inodes, entries, and the tables that hang on them
//	contents.go   contents, who owns them, what they refer to
//	merge.go      extents and blobs, walked side by side in order of contents
//	parts.go      parts of uploads in progress, of that walk
//	confirm.go    suspicions of that walk, looked at again in one snapshot
//	data.go       the bytes of files; the quarantine
//	missing.go    blobs that are gone, and the files that use them
//	leftovers.go  what a crash left: swept in the background, once, after a start
//	store.go      what is needed of the namespace
//
// What concerns several keys is looked at within one snapshot. What concerns
// blobs, which no snapshot covers, is a suspicion until it was looked at again,
// with names and blobs in the order in which writers make them: a blob is durable
// before it is named, and unnamed before it is deleted. A record that cannot be
// read may own or name anything: nothing is removed because of it.
//
// A Repair is one transaction, like any operation of the namespace; what it
// changes beside single records, the namespace does (Repairer).
package fsck
