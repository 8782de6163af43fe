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
