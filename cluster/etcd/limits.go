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
	// commitTimeout bounds the wait for the answer of a commit, but for urgent ones: an
	// election and a slow disk.
	commitTimeout = 5 * time.Second
)
