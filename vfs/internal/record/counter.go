package record

import (
	"encoding/binary"

	"ogw/cluster"
)

// Counter returns a number kept under 'C', 0 if there is none yet.
func Counter(r cluster.Reader, name string) (n uint64, err error) {
	b, err := r.Get(CounterKey(name))
	if err == nil && len(b) == 8 {
		n = binary.BigEndian.Uint64(b)
	}
	return n, err
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
