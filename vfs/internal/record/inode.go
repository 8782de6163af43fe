package record

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/fserr"
)

// Inode is the stored record of an inode.
//
// Layout: version byte 1; uvarints in the order of the list in encode; the
// times, 8 bytes each; name and target; what FlagCRC and FlagVerf announce, 8 bytes
// each; then the object part (present if FlagObject), the grants (if
// FlagGrants), and access and modification time once more, as seconds (varint)
// and nanoseconds (uvarint) (if flagFarTimes: one of them does not fit into the
// field), and which writes are stored (if flagStored): their number, and of each the keeper (8
// bytes), and seq and offset, 0 for StoredWhole (uvarints).
type Inode struct {
	Ino     Ino
	Gen     uint32
	Mode    uint32
	Nlink   uint32
	UID     uint32
	GID     uint32
	Rdev    uint32
	Flags   inodeFlags
	Size    int64
	Atime   Time
	Mtime   Time // of a directory: its own content (key "x/") only; see DirTimeKey
	CtimeNS int64
	BtimeNS int64
	Parent  Ino       // directory of the last link made
	Name    string    // stored name of the last link made
	Target  string    // of a symlink
	Version uint64    // grows with every change of content
	Content ContentID // 0: no bytes stored (empty or all holes)
	Used    int64     // bytes that extents of this content store, not over holes; more where that was not counted
	Epoch   uint64    // grows when an object operation replaces the content: older writers are stale
	CRC     uint64    // CRC64NVME of the whole content, if FlagCRC
	Verf    uint64    // verifier of an exclusive create (RFC 1813 section 3.3.8), if FlagVerf
	Object  Object
	Grants  Grants // what the owner gave to others, if FlagGrants
	Stored  Stored // of writes that may be made again
}

type inodeFlags uint32

const (
	// FlagExplicit: somebody made this directory, so it stays when it
	// empties and S3 lists its own key.
	FlagExplicit inodeFlags = 1 << iota
	// FlagShadows: this directory may hold a file and a directory of one
	// name. It is set when such a pair comes to be and never cleared.
	FlagShadows
	// FlagXattrs: there may be extended attributes under 'x'.
	FlagXattrs
	// FlagShared: the content has a record under 's', because other contents
	// name its extents: it must not change in place.
	FlagShared
	// FlagCRC: crc is valid.
	FlagCRC
	// FlagVerf: verf is valid; cleared by the first change.
	FlagVerf
	// FlagObject: the object part is present.
	FlagObject
	// FlagLinks: this inode has or had several links; 'l' keys name them.
	FlagLinks
	// FlagRefs: the content may have ref extents.
	FlagRefs
	// FlagACL: there may be POSIX ACLs among the extended attributes.
	FlagACL
	// FlagUploads: this directory is or was a bucket that had uploads.
	FlagUploads
	// FlagGrants: grants are present.
	FlagGrants
	// FlagChosen: somebody chose the mode; FlagUnchosen: nobody did. A record
	// older than format 2 has neither (mode.go).
	FlagChosen
	FlagUnchosen
	// Bits 14 to 17 are the FileFlags of package perm.
)

// FlagOneInline: the content is one inline extent at offset 0, which holds all
// bytes used. A content that is replaced need not be looked at then.
const FlagOneInline inodeFlags = 1 << 18

// FlagPolicy: this directory is a bucket with a policy.
const FlagPolicy inodeFlags = 1 << 19

// FlagOwnership: this directory is a bucket that owns what others write into it, or for
// which the requester pays: its attributes tell.
const FlagOwnership inodeFlags = 1 << 20

// flagStored: it is said which writes are stored.
const flagStored inodeFlags = 1 << 21

// flagFarTimes: a time that somebody chose does not fit into 64 bits of
// nanoseconds.
const flagFarTimes inodeFlags = 1 << 31

// Object is what an S3 or REST PUT left, and POSIX files lack. A POSIX
// write clears the sum (the ETag becomes opaque), the checksums and the
// parts, and keeps the rest.
type Object struct {
	Sum         []byte // MD5, or MD5 of the parts' MD5s; nil: opaque ETag
	NParts      int    // > 0: multipart
	ContentType string
	Headers     map[string]string
	Checksums   []checksum.Sum
	Parts       []ObjectPart
}

func (o *Object) empty() bool {
	return len(o.Sum) == 0 && o.NParts == 0 && o.ContentType == "" &&
		len(o.Headers) == 0 && len(o.Checksums) == 0 && len(o.Parts) == 0
}

const inodeVersion = 1

func (n *Inode) IsDir() bool           { return n.Mode&ModeTypeMask == ModeDirectory }
func (n *Inode) IsRegular() bool       { return n.Mode&ModeTypeMask == ModeRegular }
func (n *Inode) IsSymlink() bool       { return n.Mode&ModeTypeMask == ModeSymlink }
func (n *Inode) Has(f inodeFlags) bool { return n.Flags&f != 0 }

func (n *Inode) Set(f inodeFlags, on bool) {
	if on {
		n.Flags |= f
	} else {
		n.Flags &^= f
	}
}

// Encode returns the stored form.
func (n *Inode) Encode() []byte {
	n.Set(FlagObject, !n.Object.empty())
	n.Set(flagFarTimes, n.Atime.far() || n.Mtime.far())
	n.Set(flagStored, len(n.Stored) > 0)
	b := make([]byte, 0, 128+len(n.Name)+len(n.Target))
	b = append(b, inodeVersion)
	for _, v := range [...]uint64{uint64(n.Flags), uint64(n.Gen), uint64(n.Mode), uint64(n.Nlink),
		uint64(n.UID), uint64(n.GID), uint64(n.Rdev), uint64(n.Size), uint64(n.Parent),
		n.Version, uint64(n.Content), uint64(n.Used), n.Epoch} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range [...]int64{n.Atime.UnixNS(), n.Mtime.UnixNS(), n.CtimeNS, n.BtimeNS} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = appendStr(b, n.Name)
	b = appendStr(b, n.Target)
	if n.Has(FlagCRC) {
		b = binary.BigEndian.AppendUint64(b, n.CRC)
	}
	if n.Has(FlagVerf) {
		b = binary.BigEndian.AppendUint64(b, n.Verf)
	}
	if n.Has(FlagObject) {
		b = n.Object.appendTo(b)
	}
	if n.Has(FlagGrants) {
		b = appendBytes(b, EncodeGrants(n.Grants))
	}
	if n.Has(flagFarTimes) {
		for _, t := range [...]Time{n.Atime, n.Mtime} {
			b = binary.AppendVarint(b, t.Sec)
			b = binary.AppendUvarint(b, uint64(t.Nsec))
		}
	}
	if n.Has(flagStored) {
		b = n.Stored.appendTo(b)
	}
	return b
}

func (o *Object) appendTo(b []byte) []byte {
	b = appendBytes(b, o.Sum)
	b = binary.AppendUvarint(b, uint64(o.NParts))
	b = appendStr(b, o.ContentType)
	b = appendStrMap(b, o.Headers)
	b = appendChecksums(b, o.Checksums)
	b = binary.AppendUvarint(b, uint64(len(o.Parts)))
	for _, p := range o.Parts {
		b = binary.AppendUvarint(b, uint64(p.Number))
		b = binary.AppendUvarint(b, uint64(p.Size))
		b = appendBytes(b, p.Checksum)
	}
	return b
}

func appendChecksums(b []byte, cs []checksum.Sum) []byte {
	b = binary.AppendUvarint(b, uint64(len(cs)))
	for _, c := range cs {
		b = appendStr(b, string(c.Algorithm))
		b = appendBytes(b, c.Value)
		b = binary.AppendUvarint(b, uint64(c.Parts))
	}
	return b
}

func (d *Decoder) checksums() []checksum.Sum {
	n := d.Count()
	if n == 0 {
		return nil
	}
	cs := make([]checksum.Sum, 0, n)
	for i := 0; i < n && d.Err == nil; i++ {
		cs = append(cs, checksum.Sum{Algorithm: checksum.Algorithm(d.Str()), Value: d.Bytes(), Parts: int(d.Uint())})
	}
	return cs
}

// DecodeInode is the inverse of encode. b must not be changed afterwards.
func DecodeInode(ino Ino, b []byte) (*Inode, error) {
	n := &Inode{Ino: ino}
	return n, n.Decode(b)
}

// Decode sets all but the number.
func (n *Inode) Decode(b []byte) error {
	d := Decoder{B: b, What: "inode"}
	if v := d.Byte(); v != inodeVersion {
		return fmt.Errorf("%w: inode %d has format %d", fserr.ErrCorrupt, n.Ino, v)
	}
	n.Flags = inodeFlags(d.Uint())
	n.Gen = uint32(d.Uint())
	n.Mode = uint32(d.Uint())
	n.Nlink = uint32(d.Uint())
	n.UID = uint32(d.Uint())
	n.GID = uint32(d.Uint())
	n.Rdev = uint32(d.Uint())
	n.Size = int64(d.Uint())
	n.Parent = Ino(d.Uint())
	n.Version = d.Uint()
	n.Content = ContentID(d.Uint())
	n.Used = int64(d.Uint())
	n.Epoch = d.Uint()
	n.Atime = TimeNS(int64(d.fixed64()))
	n.Mtime = TimeNS(int64(d.fixed64()))
	n.CtimeNS = int64(d.fixed64())
	n.BtimeNS = int64(d.fixed64())
	n.Name = d.Str()
	n.Target = d.Str()
	if n.Has(FlagCRC) {
		n.CRC = d.fixed64()
	}
	if n.Has(FlagVerf) {
		n.Verf = d.fixed64()
	}
	if n.Has(FlagObject) {
		n.Object.decode(&d)
	}
	if n.Has(FlagGrants) {
		var err error
		if n.Grants, err = DecodeGrants(d.Bytes()); err != nil {
			return err
		}
	}
	if n.Has(flagFarTimes) {
		for _, t := range [...]*Time{&n.Atime, &n.Mtime} {
			*t = Time{d.Int(), uint32(d.Uint())}
		}
	}
	if n.Has(flagStored) {
		n.Stored = d.stored()
	}
	if n.Size < 0 || !ValidTime(n.Atime) || !ValidTime(n.Mtime) {
		d.Fail()
	}
	return d.End()
}

func (o *Object) decode(d *Decoder) {
	if s := d.Bytes(); len(s) > 0 {
		o.Sum = s
	}
	o.NParts = int(d.Uint())
	o.ContentType = d.Str()
	o.Headers = d.strMap()
	o.Checksums = d.checksums()
	n := d.Count()
	for i := 0; i < n && d.Err == nil; i++ {
		o.Parts = append(o.Parts, ObjectPart{int(d.Uint()), int64(d.Uint()), d.Bytes()})
	}
}

func (d *Decoder) stored() (list Stored) {
	for n := d.Count(); n > 0 && d.Err == nil; n-- {
		s := StoredWrites{d.fixed64(), d.Uint(), int64(d.Uint())}
		if s.UpTo == 0 {
			s.UpTo = StoredWhole
		}
		if s.UpTo < 0 {
			d.Fail()
		}
		list = append(list, s)
	}
	return list
}

// GetInode reads an inode; fserr.ErrStale if there is none.
func GetInode(r cluster.Reader, ino Ino) (*Inode, error) {
	b, err := r.Get(InodeKey(ino))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("inode %d: %w", ino, fserr.ErrStale)
	}
	return DecodeInode(ino, b)
}

func PutInode(t cluster.Txn, n *Inode) error { return t.Set(InodeKey(n.Ino), n.Encode()) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// ForgetSums is for every change of content: what described the old bytes, and
// what their owner granted to others, does not hold for the new ones.
func (n *Inode) ForgetSums() {
	n.Set(FlagVerf, false)
	n.SetGrants(nil)
	n.Object.Sum, n.Object.NParts = nil, 0
	n.Object.Checksums, n.Object.Parts = nil, nil
}

// ForgetForm is for who empties a file to write it anew and cannot say what the new
// bytes are: the type and the encoding of the old ones do not hold for these.
func (o *Object) ForgetForm() {
	o.ContentType = ""
	delete(o.Headers, "Content-Encoding")
}
