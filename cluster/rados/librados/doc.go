// Package librados is a pool of a Ceph cluster, by the library of Ceph's clients. All but
// this page needs the build tag ceph, cgo, and librados (Debian: librados-dev).
//
//	call ──► slot (maxUnderWay), for Timeout ──► a goroutine ──► librados, until its answer or Timeout
//	  └──── returns before that when its context ends
//
// Each request is one synchronous call of librados, which holds a thread meanwhile. librados
// sends a request again by itself when an OSD or a monitor goes, and each is done once; after
// Timeout it gives up, with an unknown outcome. Until another one is answered, callers wait for
// a few seconds only (impatience). Requests of one client for one object
// are done in the order in which they were made, those that were given up included.
//
// Errors: what the pool lacks space for (ENOSPC, or a quota: EDQUOT) is ErrNoSpace, at once. An
// object that is missing is ErrNotFound only while the pool is there. Refused credentials and
// all else are ErrUnavailable.
package librados
