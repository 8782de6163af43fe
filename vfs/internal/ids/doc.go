// Package ids hands out the numbers of inodes, contents and blobs. A process takes
// a range of them from a counter in the store, durably, before it uses any; so none
// is used twice, whatever dies. No transaction runs within another: Reserve is
// called before one.
//
// A Use tells what was taken and is not named yet, so that others may remove what is
// older and nothing names (package session).
//
// A range is taken for all who wait, each no longer than its context lets it. That needs none of
// the connections that they have (cluster.Urgent). Allocator.mu and Allocator.using are leaves,
// and nothing waits under the latter for the former.
package ids
