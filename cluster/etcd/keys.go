package etcd

import "fmt"

// engineKeys begins, after the prefix, what the engine keeps for itself.
const engineKeys = "\xff"

// keyspace is the prefix of a store's keys.
type keyspace string

// key returns where a pair of the store lies, and the bound of a range too.
func (k keyspace) key(key []byte) string { return string(k) + string(key) }

// strip returns the store's key of one in etcd.
func (k keyspace) strip(key []byte) []byte { return key[len(k):] }

// end returns the bound of a range; nil is the end of the store's pairs.
func (k keyspace) end(end []byte) string {
	if end == nil {
		return string(k) + engineKeys
	}
	return k.key(end)
}

func (k keyspace) slot(lease int64, n int) string {
	return fmt.Sprintf("%s%sslot/%016x/%d", string(k), engineKeys, lease, n)
}

func (k keyspace) joint() string { return string(k) + engineKeys + "joint" }

func (k keyspace) compacted() string { return string(k) + engineKeys + "compacted" }
