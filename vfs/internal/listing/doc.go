// Package listing makes pages of keys and of uploads, in one snapshot: what of a
// bucket a subject may see, in byte order, by seeks and scans, never a sort. What an
// object is besides its inode (bytes that wait in a write buffer) is the caller's.
package listing
