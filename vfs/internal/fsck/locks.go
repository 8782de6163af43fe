package fsck

import (
	"bytes"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// locksOK reports whether locks can be read, and are those of an inode.
func locksOK(r cluster.Reader, p pair) (bool, error) {
	if _, err := record.DecodeFileLocks(p.value); err != nil {
		return false, nil //nolint:nilerr // they are none
	}
	return inodeOK(r, p, nil)
}

// waitOK reports whether an owner of locks waits where it is said to.
func waitOK(r cluster.Reader, p pair) (bool, error) {
	inos, err := record.DecodeWaits(p.value)
	if err != nil {
		return false, nil //nolint:nilerr // it is nothing
	}
	for _, ino := range inos {
		v, err := r.Get(record.LockKey(ino))
		if err != nil {
			return false, err
		}
		f, err := record.DecodeFileLocks(v)
		if err != nil || !slices.ContainsFunc(f.Waiting, func(w lock.Waiter) bool { return bytes.Equal(record.WaitKey(w.Lock.Owner), p.key) }) {
			return false, nil //nolint:nilerr // what is said there is dropped, too
		}
	}
	return true, nil
}

// lockerOK reports whether a remote client has something where it is said to.
func lockerOK(r cluster.Reader, p pair) (bool, error) {
	client, ino, err := record.ParseLockerKey(p.key)
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

// unlisted finds what remote clients have of a file's locks, but would not be found by who
// ends all that they have.
func unlisted(r cluster.Reader, p pair, f *findings) error {
	locks, err := record.DecodeFileLocks(p.value)
	if err != nil {
		return nil //nolint:nilerr // it was reported
	}
	for client := range locks.Lockers() {
		key := record.LockerKey(client, uint64(record.InoOfKey(p.key)))
		list := func(t cluster.Txn, _ Repairer) error {
			v, err := t.Get(p.key)
			if err != nil {
				return err
			}
			now, err := record.DecodeFileLocks(v)
			if err != nil || now.Lockers()[client] == 0 {
				return err
			}
			return t.Set(key, record.EncodeLocker(now.Lockers()[client]))
		}
		switch v, err := r.Get(key); {
		case err != nil:
			return err
		case v == nil:
			f.add("unlisted-lock", list, "locks of %q on inode %d are not in the list of its locks", client, record.InoOfKey(p.key))
		}
	}
	return nil
}
