package nfsserver

import (
	"math"
	"time"

	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// File types (ftype3, RFC 1813 section 2.5.5).
const (
	typeRegular   = 1
	typeDirectory = 2
	typeBlock     = 3
	typeChar      = 4
	typeSymlink   = 5
	typeSocket    = 6
	typeFIFO      = 7
)

func fileType(mode uint32) uint32 {
	switch mode & vfs.ModeTypeMask {
	case vfs.ModeDirectory:
		return typeDirectory
	case vfs.ModeBlock:
		return typeBlock
	case vfs.ModeChar:
		return typeChar
	case vfs.ModeSymlink:
		return typeSymlink
	case vfs.ModeSocket:
		return typeSocket
	case vfs.ModeFIFO:
		return typeFIFO
	}
	return typeRegular
}

// attrBytes is the length of an encoded fattr3.
const attrBytes = 84

// putAttr encodes a fattr3 (RFC 1813 section 2.5.5).
func putAttr(w *xdr.Writer, a *vfs.Attr, fsid uint64) {
	w.Uint32(fileType(a.Mode))
	w.Uint32(a.Mode & vfs.ModePermMask)
	w.Uint32(a.Nlink)
	w.Uint32(a.UID)
	w.Uint32(a.GID)
	w.Uint64(uint64(a.Size))
	w.Uint64(uint64(a.Used))
	major, minor := splitDev(a.Rdev)
	w.Uint32(major)
	w.Uint32(minor)
	w.Uint64(fsid)
	w.Uint64(uint64(a.Ino))
	putTime(w, a.Atime)
	putTime(w, a.Mtime)
	putTime(w, vfs.TimeNS(a.CtimeNS))
}

// putPostOp encodes a post_op_attr; a may be nil.
func putPostOp(w *xdr.Writer, a *vfs.Attr, fsid uint64) {
	if a == nil {
		w.Uint32(0)
		return
	}
	w.Uint32(1)
	putAttr(w, a, fsid)
}

// putWcc encodes wcc_data (RFC 1813 section 2.6); before and after may be nil.
func putWcc(w *xdr.Writer, before, after *vfs.Attr, fsid uint64) {
	w.Bool(before != nil)
	if before != nil {
		w.Uint64(uint64(before.Size))
		putTime(w, before.Mtime)
		putTime(w, vfs.TimeNS(before.CtimeNS))
	}
	putPostOp(w, after, fsid)
}

// putTime encodes an nfstime3, which holds 1970 to 2106; other times become
// the nearest it can.
func putTime(w *xdr.Writer, t vfs.Time) {
	switch {
	case t.Sec < 0:
		t = vfs.Time{}
	case t.Sec > math.MaxUint32:
		t = vfs.Time{Sec: math.MaxUint32}
	}
	w.Uint32(uint32(t.Sec))
	w.Uint32(t.Nsec)
}

func getTime(r *xdr.Reader) vfs.Time {
	sec, nsec := r.Uint32(), r.Uint32()
	if nsec >= uint32(time.Second) {
		r.Fail(xdr.ErrBadValue)
	}
	return vfs.Time{Sec: int64(sec), Nsec: nsec}
}

// splitDev and makeDev translate Linux device numbers (makedev(3)).
func splitDev(dev uint32) (major, minor uint32) {
	return dev >> 8 & 0xfff, dev&0xff | dev>>12&0xfff00
}

func makeDev(major, minor uint32) (dev uint32, ok bool) {
	if major > 0xfff || minor > 0xfffff {
		return 0, false
	}
	return minor&0xff | major<<8 | minor&^0xff<<12, true
}

// How a time is set (time_how, RFC 1813 section 2.5.3).
const (
	timeKeep   = 0
	timeServer = 1
	timeClient = 2
)

// sattr is a sattr3.
type sattr struct {
	set  vfs.SetAttr
	mode uint32
	uid  uint32
	gid  uint32
	size int64
	at   vfs.Time
	mt   vfs.Time
	// tooBig: the size is over what a file can have.
	tooBig bool
}

// decode decodes a sattr3 (RFC 1813 section 2.5.3). An owner that is nobody, what
// chown(2) has for "leave as it is", leaves it.
func (s *sattr) decode(r *xdr.Reader) {
	if r.Bool() {
		s.mode = r.Uint32() & vfs.ModePermMask
		s.set.Mode = &s.mode
	}
	if r.Bool() {
		if s.uid = r.Uint32(); s.uid != vfs.NoID {
			s.set.UID = &s.uid
		}
	}
	if r.Bool() {
		if s.gid = r.Uint32(); s.gid != vfs.NoID {
			s.set.GID = &s.gid
		}
	}
	if r.Bool() {
		size := r.Uint64()
		s.tooBig = size > vfs.MaxFileBytes
		s.size = int64(size)
		s.set.Size = &s.size
	}
	s.set.AtimeNow = setTime(r, &s.at, &s.set.Atime)
	s.set.MtimeNow = setTime(r, &s.mt, &s.set.Mtime)
}

func setTime(r *xdr.Reader, t *vfs.Time, set **vfs.Time) (now bool) {
	switch r.Uint32() {
	case timeKeep:
	case timeServer:
		return true
	case timeClient:
		*t = getTime(r)
		*set = t
	default:
		r.Fail(xdr.ErrBadValue)
	}
	return false
}

// rest returns the attributes that an operation which takes a mode did not
// apply yet, and whether there are any.
func (s *sattr) rest() (vfs.SetAttr, bool) {
	set := s.set
	set.Mode, set.Size = nil, nil
	return set, set.UID != nil || set.GID != nil || set.Atime != nil || set.Mtime != nil
}

func (s *sattr) modeOr(def uint32) uint32 {
	if s.set.Mode != nil {
		return s.mode
	}
	return def
}
