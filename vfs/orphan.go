package vfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"ogw/cluster"
)

// orphanGrace is how long an inode without links stays for another process
// that has it open, in clusters that processes share. A process that runs
// renews its own.
const orphanGrace = 24 * time.Hour

// orphanValue: process (8 bytes, random), time (8, Unix nanoseconds).
func (o *op) orphanValue() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), o.fs.instance)
	return binary.BigEndian.AppendUint64(b, uint64(o.nowNS))
}

func decodeOrphan(b []byte) (instance uint64, timeNS int64, err error) {
	if len(b) != 16 {
		return 0, 0, fmt.Errorf("%w: orphan record", ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:])), nil
}

// makeOrphan records that n has no links but is open in this process (its
// nlink is 0); the caller stores n. endOrphan takes that back (a link to a
// file without a name).
func (o *op) makeOrphan(t cluster.Txn, n *inode) error {
	return t.Set(orphanKey(n.ino), o.orphanValue())
}

func (o *op) endOrphan(t cluster.Txn, n *inode) error { return t.Delete(orphanKey(n.ino)) }

// deleteInode removes n, which has no links: attributes, link and directory
// records, and its content.
func (o *op) deleteInode(t cluster.Txn, n *inode) error {
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if n.has(flagXattrs) {
		if err := deletePrefix(t, xattrPrefix(n.ino)); err != nil {
			return err
		}
	}
	if n.has(flagLinks) {
		if err := deletePrefix(t, linkPrefix(n.ino)); err != nil {
			return err
		}
	}
	if n.isDir() {
		if err := t.Delete(dirTimeKey(n.ino)); err != nil {
			return err
		}
	}
	o.inodeChanged(n.ino, true)
	return t.Delete(inodeKey(n.ino))
}

// deletePrefix removes all keys with prefix. Attributes and links of one
// inode are few: both are limited.
func deletePrefix(t cluster.Txn, prefix []byte) error {
	var keys [][]byte
	err := t.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := t.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// removeOrphan deletes ino if it is an orphan that nobody here has open.
func (fs *FS) removeOrphan(ctx context.Context, ino Ino) error {
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		b, err := t.Get(orphanKey(ino))
		if err != nil || b == nil {
			return err
		}
		if o.beginUnlink(ino) {
			return nil // opened again; its last close comes here
		}
		v, err := t.Get(inodeKey(ino))
		if err != nil {
			return err
		}
		if v != nil {
			n, err := decodeInode(ino, v)
			if err != nil {
				return err
			}
			if n.nlink == 0 {
				if err := o.deleteInode(t, n); err != nil {
					return err
				}
			}
		}
		return t.Delete(orphanKey(ino))
	})
}

// collectOrphans removes what a crashed process left: inodes without links
// that nobody has open. In a shared cluster those of others stay for
// orphanGrace, and this process renews the records of its own.
func (fs *FS) collectOrphans(ctx context.Context) (done int, err error) {
	type orphan struct {
		ino  Ino
		mine bool
		atNS int64
	}
	from := []byte{tabOrphan}
	for {
		var page []orphan
		err := fs.view(ctx, func(r cluster.Reader) error {
			page = page[:0]
			return r.Scan(from, []byte{tabOrphan + 1}, cluster.ScanOptions{Limit: collectPage}, func(k, v []byte) error {
				instance, at, err := decodeOrphan(v)
				if err != nil || len(k) != 9 {
					return fmt.Errorf("%w: orphan key %x", ErrCorrupt, k)
				}
				page = append(page, orphan{Ino(binary.BigEndian.Uint64(k[1:])), instance == fs.instance, at})
				return nil
			})
		})
		if err != nil {
			return done, err
		}
		now := fs.cfg.Now().UnixNano()
		for _, x := range page {
			old := now-x.atNS > int64(orphanGrace)
			open := fs.opens.get(x.ino) != nil
			switch {
			case open && now-x.atNS > int64(orphanGrace/4):
				err = fs.update(ctx, func(t cluster.Txn, o *op) error {
					b, err := t.Get(orphanKey(x.ino))
					if err != nil || b == nil {
						return err
					}
					return t.Set(orphanKey(x.ino), o.orphanValue())
				})
			case !open && (x.mine || old || fs.clu.Exclusive):
				if err = fs.removeOrphan(ctx, x.ino); err == nil {
					done++
				}
			}
			if err != nil {
				return done, err
			}
		}
		if len(page) < collectPage {
			return done, nil
		}
		from = append(orphanKey(page[len(page)-1].ino), 0)
	}
}
