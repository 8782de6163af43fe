// Package format makes the records that every store has, and converts those of
// older formats (record.FormatVersion) before anything else reads them.
package format

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// Options of Open.
type Options struct {
	// Mode, UID and GID are those of the root of a store that is made.
	Mode, UID, GID uint32
	// MovedTo is where the store may have been moved to (MarkMoved): "" if it may not.
	MovedTo string
	Keys    *seal.Keyring // seal what has to be sealed again
	Log     *slog.Logger
	Now     func() time.Time
}

// Open reads the superblock, or makes it together with the root. A store
// of an older format is converted. It returns cluster.ErrFormat for a newer one.
func Open(ctx context.Context, kv cluster.KV, o Options) (super record.Superblock, err error) {
	super, moved, err := readSuper(ctx, kv, &o)
	if err == nil && !moved {
		err = convert(ctx, kv, &super, &o)
	}
	return super, err
}

func readSuper(ctx context.Context, kv cluster.KV, o *Options) (super record.Superblock, moved bool, err error) {
	err = fserr.Map(kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.SuperKey())
		if err != nil {
			return err
		}
		var m record.Moved
		if m, moved, err = record.DecodeMoved(b); moved {
			super = m.Super
			return cmp.Or(err, admit(&m, o.MovedTo))
		}
		if b != nil {
			super, err = record.DecodeSuper(b)
			return err
		}
		var id [8]byte
		rand.Read(id[:])
		now := o.Now().UnixNano()
		super = record.Superblock{Version: record.FormatVersion, FSID: binary.BigEndian.Uint64(id[:]), CreatedNS: now}
		if err := t.Set(record.SuperKey(), super.Encode()); err != nil {
			return err
		}
		root := &record.Inode{Ino: record.RootIno, Gen: 1, Mode: record.ModeDirectory | o.Mode, UID: o.UID, GID: o.GID, Nlink: 1,
			Flags: record.FlagExplicit, Parent: record.RootIno,
			Atime: record.TimeNS(now), Mtime: record.TimeNS(now), CtimeNS: now, BtimeNS: now}
		if err := record.PutInode(t, root); err != nil {
			return err
		}
		return record.PutDirTime(t, record.RootIno, now, now)
	}))
	return super, moved, err
}
