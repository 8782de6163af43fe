// Package ids hands out the numbers of inodes, contents and blobs. A process takes
// a range of them from a counter in the store, durably, before it uses any; so none
// is used twice, whatever dies. No transaction runs within another: Reserve is
// called before one. Allocator.mu is a leaf, and held while a range is taken.
package ids
