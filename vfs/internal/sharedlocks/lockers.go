package sharedlocks

import (
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// voucher is whose fence the locks of an owner need that asks a gateway; 0: none, since they
// are a remote client's.
func voucher(gateway uint64, o lock.Owner) uint64 {
	if o.Remote() {
		return 0
	}
	return gateway
}

// closeOf returns which close of an owner may end its locks soon.
func closeOf(f *record.FileLocks, o lock.Owner) uint64 {
	if o.Remote() {
		return 0
	}
	return f.Holders[o].Closing
}

// same reports whether a request is for what l is.
func same(w *lock.Waiter, s lock.Space, l *lock.Lock) bool {
	return w.Space == s && w.Lock.Owner == l.Owner && w.Lock.Type == l.Type && w.Lock.Start == l.Start && w.Lock.End == l.End
}

// storeLockers writes what remote clients have of a file, where that changed, or may have
// been wrong (touched).
func storeLockers(t cluster.Txn, ino uint64, before, now map[string]int, touched []string) error {
	list := slices.Clone(touched)
	for client, n := range before {
		if now[client] != n {
			list = append(list, client)
		}
	}
	for client := range now {
		if _, known := before[client]; !known {
			list = append(list, client)
		}
	}
	slices.Sort(list)
	for _, client := range slices.Compact(list) {
		var err error
		if n := now[client]; n > 0 {
			err = t.Set(record.LockerKey(client, ino), record.EncodeLocker(n))
		} else {
			err = t.Delete(record.LockerKey(client, ino))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockers walks through what remote clients have whose names begin with a prefix, by client
// and file.
func lockers(ctx context.Context, kv cluster.KV, prefix string, fn func(client string, ino uint64, n int)) error {
	type locker struct {
		client string
		ino    uint64
		n      int
	}
	var list []locker
	from, to := record.Lockers(prefix)
	err := kv.View(ctx, func(r cluster.Reader) error {
		list = list[:0]
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			client, ino, err := record.ParseLockerKey(k)
			if err == nil { // else Check reports it
				list = append(list, locker{client, ino, record.DecodeLocker(v)})
			}
			return nil
		})
	})
	for _, x := range list {
		if err == nil {
			fn(x.client, x.ino, x.n)
		}
	}
	return err
}
