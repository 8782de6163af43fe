// Package ids hands out the numbers of inodes, contents and blobs. A process takes
// a range of them from a counter in the store, durably, before it uses any; so none
// is used twice, whatever dies. No transaction runs within another: Reserve is
// called before one.
//
// A Use tells what was taken and is not named yet, so that others may remove what is
// older and nothing names (package session).
//
// Allocator.mu is held while a range is taken, which needs none of the connections that
// those have who wait for it (cluster.Urgent); Allocator.using never for long, and nothing
// waits for the former under it. Both are leaves.
package ids
