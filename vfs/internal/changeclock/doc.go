// Package changeclock reports whether an inode may have changed since a moment, for
// those who remember what they read. Transactions are wrapped (Txn): what they
// write is counted before they commit and stamped when they are over. Nothing is
// reported to the ones who remember, and there are no locks.
package changeclock
