package vfs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// superblock is the record that makes a store ours.
//
// Value: magic (4 bytes), format version (uvarint), fsid (8), creation (8, Unix ns).
type superblock struct {
	version   uint64
	fsid      uint64
	createdNS int64
}

const superMagic = "ogw\x00"

func (s *superblock) encode() []byte {
	b := binary.AppendUvarint([]byte(superMagic), s.version)
	b = binary.BigEndian.AppendUint64(b, s.fsid)
	return binary.BigEndian.AppendUint64(b, uint64(s.createdNS))
}

func decodeSuper(b []byte) (superblock, error) {
	if len(b) < len(superMagic) || string(b[:len(superMagic)]) != superMagic {
		return superblock{}, fmt.Errorf("%w: the store holds something else", cluster.ErrFormat)
	}
	d := decoder{b: b[len(superMagic):], what: "superblock"}
	s := superblock{version: d.uint()}
	if s.version == restoringVersion {
		return s, errRestoring
	}
	if d.err == nil && s.version > FormatVersion {
		return s, fmt.Errorf("%w: the store has format %d, this program knows up to %d",
			cluster.ErrFormat, s.version, FormatVersion)
	}
	s.fsid, s.createdNS = d.fixed64(), int64(d.fixed64())
	return s, d.end()
}

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
		b, err := t.Get(superKey())
		if err != nil {
			return err
		}
		if b != nil {
			fs.super, err = decodeSuper(b)
			return err
		}
		var id [8]byte
		rand.Read(id[:])
		now := fs.cfg.Now().UnixNano()
		fs.super = superblock{FormatVersion, binary.BigEndian.Uint64(id[:]), now}
		if err := t.Set(superKey(), fs.super.encode()); err != nil {
			return err
		}
		root := &inode{ino: RootIno, gen: 1, mode: ModeDirectory | fs.cfg.DirMode, uid: fs.cfg.RootUID, gid: fs.cfg.RootGID, nlink: 1,
			flags: flagExplicit, parent: RootIno,
			atime: TimeNS(now), mtime: TimeNS(now), ctimeNS: now, btimeNS: now}
		if err := putInode(t, root); err != nil {
			return err
		}
		return putDirTime(t, RootIno, now, now)
	}))
}

// putDirTime records a change of a directory's entries. It is written
// blindly, so that many may create in one directory at the same time.
func putDirTime(t cluster.Txn, dir Ino, mtimeNS, ctimeNS int64) error {
	return t.Set(dirTimeKey(dir), encodeDirTime(TimeNS(mtimeNS), ctimeNS))
}

// A far time follows as seconds (8) and nanoseconds (4).
func encodeDirTime(mtime Time, ctimeNS int64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, dirTimeFarBytes), uint64(mtime.UnixNS()))
	b = binary.BigEndian.AppendUint64(b, uint64(ctimeNS))
	if mtime.far() {
		b = binary.BigEndian.AppendUint64(b, uint64(mtime.Sec))
		b = binary.BigEndian.AppendUint32(b, mtime.Nsec)
	}
	return b
}

const (
	dirTimeBytes    = 16
	dirTimeFarBytes = 28
)

func parseDirTime(b []byte) (mtime Time, ctimeNS int64, err error) {
	if len(b) != dirTimeBytes && len(b) != dirTimeFarBytes {
		return mtime, 0, fmt.Errorf("%w: directory times", ErrCorrupt)
	}
	mtime = TimeNS(int64(binary.BigEndian.Uint64(b)))
	if len(b) == dirTimeFarBytes {
		mtime = Time{int64(binary.BigEndian.Uint64(b[16:])), binary.BigEndian.Uint32(b[24:])}
	}
	return mtime, int64(binary.BigEndian.Uint64(b[8:])), nil
}
