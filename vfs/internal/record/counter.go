package record

import (
	"encoding/binary"

	"ogw/cluster"
)

// Counters that several packages know, by their names under 'C'.
const (
	// CounterNumber is the first number that no inode, content or blob can have.
	CounterNumber = "id"
	// CounterEpoch moves on when what was deleted is to be removed (package session).
	CounterEpoch = "epoch"
	// CounterUID is the first uid that no user can have had.
	CounterUID = "uid"
	// CounterErase is 1 while the engine may hold secrets in clear that were
	// replaced or removed (package secrets).
	CounterErase = "erase"
	// CounterClaims is how often the store claimed its blobs (cluster.Claimer).
	CounterClaims = "claims"
	// CounterClaimer is the gateway that is about to do so, where several use the store.
	CounterClaimer = "claimer"
	// CounterLeft is the number of a blob: those with lower ones may be named by nothing,
	// since a process that took some is gone, or may not have named them.
	CounterLeft = "left"
	// CounterLate is how often a process may have stored something after it was put out
	// (SweepAgain).
	CounterLate = "late"
	// CounterPurge is the number of the last purge that gateways were asked for.
	CounterPurge = "purge"
	// CounterSwept is the number of a blob: those with lower ones are named, or
	// were removed after a crash.
	CounterSwept = "swept"
	// CounterSkipped is how many numbers below CounterNumber were passed over
	// (SkipNumbers).
	CounterSkipped = "skipped"
)

// Counter returns a number kept under 'C', 0 if there is none yet.
func Counter(r cluster.Reader, name string) (n uint64, err error) {
	b, err := r.Get(CounterKey(name))
	return decodeCounter(b), err
}

// Counters returns several of them, read together, in the order of their names.
func Counters(r cluster.Reader, names ...string) (list []uint64, err error) {
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = CounterKey(name)
	}
	values, err := r.GetMany(keys)
	list = make([]uint64, len(values))
	for i, b := range values {
		list[i] = decodeCounter(b)
	}
	return list, err
}

func decodeCounter(b []byte) (n uint64) {
	if len(b) == 8 {
		n = binary.BigEndian.Uint64(b)
	}
	return n
}

func SetCounter(t cluster.Txn, name string, n uint64) error {
	return t.Set(CounterKey(name), binary.BigEndian.AppendUint64(nil, n))
}

// AnyKey reports whether there is a key with prefix.
func AnyKey(r cluster.Reader, prefix []byte) (found bool, err error) {
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{Limit: 1, KeysOnly: true},
		func(_, _ []byte) error { found = true; return nil })
	return found, err
}
