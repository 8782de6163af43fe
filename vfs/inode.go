package vfs

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"ogw/cluster"
)

// inode is the stored record of an inode.
//
// Layout: version byte 1; uvarints in the order of the list in encode; the
// times, 8 bytes each; name and target; what flagCRC and flagVerf tell, 8 bytes
// each; then the object part (present if flagObject), the grants (if
// flagGrants), and access and modification time once more, as seconds (varint)
// and nanoseconds (uvarint) (if flagFarTimes: one of them does not fit into the
// field).
type inode struct {
	ino     Ino
	gen     uint32
	mode    uint32
	nlink   uint32
	uid     uint32
	gid     uint32
	rdev    uint32
	flags   inodeFlags
	size    int64
	atime   Time
	mtime   Time // of a directory: its own content (key "x/") only; see dirTimeKey
	ctimeNS int64
	btimeNS int64
	parent  Ino       // directory of the last link made
	name    string    // stored name of the last link made
	target  string    // of a symlink
	version uint64    // grows with every change of content
	content ContentID // 0: no bytes stored (empty or all holes)
	used    int64     // bytes of storage that extents of this content hold
	epoch   uint64    // grows when an object operation replaces the content: older writers are stale
	crc     uint64    // CRC64NVME of the whole content, if flagCRC
	verf    uint64    // verifier of an exclusive create (RFC 1813 section 3.3.8), if flagVerf
	object  objectPart
	grants  Grants // what the owner gave to others, if flagGrants
}

type inodeFlags uint32

const (
	// flagExplicit: somebody made this directory, so it stays when it
	// empties and S3 lists its own key.
	flagExplicit inodeFlags = 1 << iota
	// flagShadows: this directory may hold a file and a directory of one
	// name. It is set when such a pair comes to be and never cleared.
	flagShadows
	// flagXattrs: there may be extended attributes under 'x'.
	flagXattrs
	// flagShared: the content has a record under 's', because other contents
	// name its extents: it must not change in place.
	flagShared
	// flagCRC: crc is valid.
	flagCRC
	// flagVerf: verf is valid; cleared by the first change.
	flagVerf
	// flagObject: the object part is present.
	flagObject
	// flagLinks: this inode has or had several links; 'l' keys name them.
	flagLinks
	// flagRefs: the content may have ref extents.
	flagRefs
	// flagACL: there may be POSIX ACLs among the extended attributes.
	flagACL
	// flagUploads: this directory is or was a bucket that had uploads.
	flagUploads
	// flagGrants: grants are present.
	flagGrants
	// flagChosen: somebody chose the mode; flagUnchosen: nobody did. A record
	// older than format 2 has neither (modes.go).
	flagChosen
	flagUnchosen
	// Bits 14 to 17 are the FileFlags (fileflags.go).
)

// flagFarTimes: a time that somebody chose does not fit into 64 bits of
// nanoseconds.
const flagFarTimes inodeFlags = 1 << 31

// objectPart is what an S3 or REST PUT left, and POSIX files lack. A POSIX
// write clears the sum (the ETag becomes opaque), the checksums and the
// parts, and keeps the rest.
type objectPart struct {
	sum         []byte // MD5, or MD5 of the parts' MD5s; nil: opaque ETag
	nparts      int    // > 0: multipart
	contentType string
	headers     map[string]string
	checksums   []Checksum
	parts       []ObjectPart
}

func (o *objectPart) empty() bool {
	return len(o.sum) == 0 && o.nparts == 0 && o.contentType == "" &&
		len(o.headers) == 0 && len(o.checksums) == 0 && len(o.parts) == 0
}

const inodeVersion = 1

func (n *inode) isDir() bool           { return n.mode&ModeTypeMask == ModeDirectory }
func (n *inode) isRegular() bool       { return n.mode&ModeTypeMask == ModeRegular }
func (n *inode) isSymlink() bool       { return n.mode&ModeTypeMask == ModeSymlink }
func (n *inode) has(f inodeFlags) bool { return n.flags&f != 0 }

func (n *inode) set(f inodeFlags, on bool) {
	if on {
		n.flags |= f
	} else {
		n.flags &^= f
	}
}

// fileFlagsShift is where the FileFlags are among the flags.
const fileFlagsShift = 14

func (n *inode) fileFlags() FileFlags { return FileFlags(n.flags>>fileFlagsShift) & allFileFlags }

func (n *inode) setFileFlags(f FileFlags) {
	n.flags = n.flags&^(inodeFlags(allFileFlags)<<fileFlagsShift) | inodeFlags(f)<<fileFlagsShift
}

// encode returns the stored form.
func (n *inode) encode() []byte {
	n.set(flagObject, !n.object.empty())
	n.set(flagFarTimes, n.atime.far() || n.mtime.far())
	b := make([]byte, 0, 128+len(n.name)+len(n.target))
	b = append(b, inodeVersion)
	for _, v := range [...]uint64{uint64(n.flags), uint64(n.gen), uint64(n.mode), uint64(n.nlink),
		uint64(n.uid), uint64(n.gid), uint64(n.rdev), uint64(n.size), uint64(n.parent),
		n.version, uint64(n.content), uint64(n.used), n.epoch} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range [...]int64{n.atime.UnixNS(), n.mtime.UnixNS(), n.ctimeNS, n.btimeNS} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = appendStr(b, n.name)
	b = appendStr(b, n.target)
	if n.has(flagCRC) {
		b = binary.BigEndian.AppendUint64(b, n.crc)
	}
	if n.has(flagVerf) {
		b = binary.BigEndian.AppendUint64(b, n.verf)
	}
	if n.has(flagObject) {
		b = n.object.appendTo(b)
	}
	if n.has(flagGrants) {
		b = appendBytes(b, n.grants.encode())
	}
	if n.has(flagFarTimes) {
		for _, t := range [...]Time{n.atime, n.mtime} {
			b = binary.AppendVarint(b, t.Sec)
			b = binary.AppendUvarint(b, uint64(t.Nsec))
		}
	}
	return b
}

func (o *objectPart) appendTo(b []byte) []byte {
	b = appendBytes(b, o.sum)
	b = binary.AppendUvarint(b, uint64(o.nparts))
	b = appendStr(b, o.contentType)
	b = appendStrMap(b, o.headers)
	b = appendChecksums(b, o.checksums)
	b = binary.AppendUvarint(b, uint64(len(o.parts)))
	for _, p := range o.parts {
		b = binary.AppendUvarint(b, uint64(p.Number))
		b = binary.AppendUvarint(b, uint64(p.Size))
		b = appendBytes(b, p.Checksum)
	}
	return b
}

func appendChecksums(b []byte, cs []Checksum) []byte {
	b = binary.AppendUvarint(b, uint64(len(cs)))
	for _, c := range cs {
		b = appendStr(b, string(c.Algorithm))
		b = appendBytes(b, c.Value)
		b = binary.AppendUvarint(b, uint64(c.Parts))
	}
	return b
}

func (d *decoder) checksums() []Checksum {
	n := d.count()
	if n == 0 {
		return nil
	}
	cs := make([]Checksum, 0, n)
	for i := 0; i < n && d.err == nil; i++ {
		cs = append(cs, Checksum{ChecksumAlgorithm(d.str()), d.bytes(), int(d.uint())})
	}
	return cs
}

// decodeInode is the inverse of encode. b must not be changed afterwards.
func decodeInode(ino Ino, b []byte) (*inode, error) {
	n := &inode{ino: ino}
	return n, n.decode(b)
}

// decode sets all but the number.
func (n *inode) decode(b []byte) error {
	d := decoder{b: b, what: "inode"}
	if v := d.byte(); v != inodeVersion {
		return fmt.Errorf("%w: inode %d has format %d", ErrCorrupt, n.ino, v)
	}
	n.flags = inodeFlags(d.uint())
	n.gen = uint32(d.uint())
	n.mode = uint32(d.uint())
	n.nlink = uint32(d.uint())
	n.uid = uint32(d.uint())
	n.gid = uint32(d.uint())
	n.rdev = uint32(d.uint())
	n.size = int64(d.uint())
	n.parent = Ino(d.uint())
	n.version = d.uint()
	n.content = ContentID(d.uint())
	n.used = int64(d.uint())
	n.epoch = d.uint()
	n.atime = TimeNS(int64(d.fixed64()))
	n.mtime = TimeNS(int64(d.fixed64()))
	n.ctimeNS = int64(d.fixed64())
	n.btimeNS = int64(d.fixed64())
	n.name = d.str()
	n.target = d.str()
	if n.has(flagCRC) {
		n.crc = d.fixed64()
	}
	if n.has(flagVerf) {
		n.verf = d.fixed64()
	}
	if n.has(flagObject) {
		n.object.decode(&d)
	}
	if n.has(flagGrants) {
		var err error
		if n.grants, err = decodeGrants(d.bytes()); err != nil {
			return err
		}
	}
	if n.has(flagFarTimes) {
		for _, t := range [...]*Time{&n.atime, &n.mtime} {
			*t = Time{d.int(), uint32(d.uint())}
		}
	}
	if n.size < 0 || !n.atime.valid() || !n.mtime.valid() {
		d.fail()
	}
	return d.end()
}

func (o *objectPart) decode(d *decoder) {
	if s := d.bytes(); len(s) > 0 {
		o.sum = s
	}
	o.nparts = int(d.uint())
	o.contentType = d.str()
	o.headers = d.strMap()
	o.checksums = d.checksums()
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		o.parts = append(o.parts, ObjectPart{int(d.uint()), int64(d.uint()), d.bytes()})
	}
}

// getInode reads an inode; ErrStale if there is none.
func getInode(r cluster.Reader, ino Ino) (*inode, error) {
	b, err := r.Get(inodeKey(ino))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("inode %d: %w", ino, ErrStale)
	}
	return decodeInode(ino, b)
}

func putInode(t cluster.Txn, n *inode) error { return t.Set(inodeKey(n.ino), n.encode()) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
