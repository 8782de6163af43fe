package fsck

import (
	"bytes"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// waitOK reports whether an owner of locks waits where it is said to.
func waitOK(r cluster.Reader, key, value []byte) (bool, error) {
	inos, err := record.DecodeWaits(value)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	for _, ino := range inos {
		v, err := r.Get(record.LockKey(ino))
		if err != nil {
			return false, err
		}
		f, err := record.DecodeFileLocks(v)
		if err != nil || !slices.ContainsFunc(f.Waiting, func(w lock.Waiter) bool { return bytes.Equal(record.WaitKey(w.Lock.Owner), key) }) {
			return false, nil //nolint:nilerr // what is said there is dropped, too
		}
	}
	return true, nil
}

// lockerOK reports whether a remote client has something where it is said to.
func lockerOK(r cluster.Reader, key []byte) (bool, error) {
	client, ino, err := record.ParseLockerKey(key)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	v, err := r.Get(record.LockKey(ino))
	if err != nil {
		return false, err
	}
	f, err := record.DecodeFileLocks(v)
	return err == nil && f.Lockers()[client] > 0, nil //nolint:nilerr // what is said there is dropped, too
}

// unlisted returns the remote clients that have something of a file's locks, but are not in the
// list by which that is found, with what lists them.
func unlisted(r cluster.Reader, key, value []byte) (map[string]func(cluster.Txn) error, error) {
	locks, err := record.DecodeFileLocks(value)
	if err != nil {
		return nil, nil //nolint:nilerr // it was reported
	}
	var found map[string]func(cluster.Txn) error
	for client := range locks.Lockers() {
		listed := record.LockerKey(client, uint64(record.InoOfKey(key)))
		v, err := r.Get(listed)
		if err != nil {
			return nil, err
		}
		if v != nil {
			continue
		}
		if found == nil {
			found = make(map[string]func(cluster.Txn) error)
		}
		found[client] = func(t cluster.Txn) error {
			v, err := t.Get(key)
			if err != nil {
				return err
			}
			now, err := record.DecodeFileLocks(v)
			if err != nil || now.Lockers()[client] == 0 {
				return err
			}
			return t.Set(listed, record.EncodeLocker(now.Lockers()[client]))
		}
	}
	return found, nil
}
