package etcd

import "time"

const (
	// etcdMaxOps is etcd's bound of a Txn (--max-txn-ops), for its comparisons
	// and for its operations.
	etcdMaxOps = 128
	// MaxOps is what a transaction may hold beside its slot.
	MaxOps = etcdMaxOps - 1
	// maxBytes of what a transaction writes leaves 256 KiB of etcd's 1.5 MiB
	// to what it compares, and to lengths.
	maxBytes = 5 << 18
	// maxLooks bounds what a commit compares together with the keys that it reads if it is
	// refused: 32 KiB stay for lengths and the prefixes of what is written. A commit
	// above it reads none, or being refused once would make it too large.
	maxLooks = 1<<18 - 32<<10
	// commitTimeout bounds the wait for the answer of a commit, but for urgent ones: an
	// election and a slow disk.
	commitTimeout = 5 * time.Second
)
