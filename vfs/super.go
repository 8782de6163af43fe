package vfs

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// FormatVersion is the version of all that is stored. A store with a greater
// one is refused, one with a smaller one is converted when it is opened.
const FormatVersion = record.FormatVersion

// openSuper reads the superblock, or makes it together with the root. A store
// of an older format is converted.
func (fs *FS) openSuper(ctx context.Context) error {
	if err := fs.readSuper(ctx); err != nil {
		return err
	}
	return fs.convert(ctx)
}

func (fs *FS) readSuper(ctx context.Context) error {
	return fserr.Map(fs.kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.SuperKey())
		if err != nil {
			return err
		}
		if b != nil {
			fs.super, err = record.DecodeSuper(b)
			return err
		}
		var id [8]byte
		rand.Read(id[:])
		now := fs.cfg.Now().UnixNano()
		fs.super = record.Superblock{Version: FormatVersion, FSID: binary.BigEndian.Uint64(id[:]), CreatedNS: now}
		if err := t.Set(record.SuperKey(), fs.super.Encode()); err != nil {
			return err
		}
		root := &record.Inode{Ino: RootIno, Gen: 1, Mode: ModeDirectory | fs.cfg.DirMode, UID: fs.cfg.RootUID, GID: fs.cfg.RootGID, Nlink: 1,
			Flags: record.FlagExplicit, Parent: RootIno,
			Atime: TimeNS(now), Mtime: TimeNS(now), CtimeNS: now, BtimeNS: now}
		if err := record.PutInode(t, root); err != nil {
			return err
		}
		return record.PutDirTime(t, RootIno, now, now)
	}))
}
