// Package naming decides how names look: keys and stored names at the POSIX doors
// (escaped where POSIX cannot express them, see the documentation of package vfs),
// names of buckets, and the content type that a name suggests. It knows no store.
package naming
