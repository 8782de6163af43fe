package postgres

import "time"

const (
	// MaxOps of a transaction: what is sent and compared in one call.
	MaxOps = 1000
	// maxBytes of a transaction, which the server holds in memory.
	maxBytes = 16 << 20
	// commitTimeout bounds the wait for the answer of a commit, its locks and
	// a slow disk included.
	commitTimeout = 10 * time.Second
	// requestTimeout bounds one query.
	requestTimeout = 10 * time.Second
)
