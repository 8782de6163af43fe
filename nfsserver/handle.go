package nfsserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"

	"ogw/vfs"
)

// A file handle, 40 bytes, big-endian:
//
//	0  version (1)
//	1  reserved, 0 (3 bytes)
//	4  export ID: which export's rules apply (4)
//	8  file-system ID (8), a digest of the namespace's own
//	16 inode (8)
//	24 reserved, 0 (4)
//	28 generation (4)
//	32 code (8): AES-CBC-MAC of the bytes before
//
// It holds nothing that a restart or another gateway over the same store
// would not know. The key comes from the namespace's ID, which never leaves
// the store as it is: handles cannot be made up, so an export's rules cannot
// be evaded by changing the ID in a handle.
const (
	handleVersion = 1
	handleBytes   = 40
	macBytes      = 8
	// maxHandle is NFS3_FHSIZE (RFC 1813 section 2.4).
	maxHandle = 64
)

type handle struct {
	export uint32
	ino    vfs.Ino
	gen    uint32
}

// sealer makes and checks handles and directory cookies. Its results are
// the same in every process that serves the namespace.
type sealer struct {
	fsid    uint64 // as clients see it
	handles cipher.Block
	cookies cipher.Block
	// valid are handles that were checked lately: clients send the same ones
	// again and again, and the code costs more than all else of a GETATTR.
	valid [validSlots]atomic.Pointer[validHandle]
}

// validSlots is how many handles are remembered, 64 bytes each; two inodes
// that share a slot displace each other.
const validSlots = 4096

// validHandle is immutable.
type validHandle struct {
	bytes handleWords
	h     handle
}

// handleWords are the bytes of a handle.
type handleWords [handleBytes / 8]uint64

func wordsOf(b []byte) (w handleWords) {
	for i := range w {
		w[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return w
}

// equal takes the same time whatever differs, as the code's comparison does.
func (w *handleWords) equal(o *handleWords) bool {
	return (w[0]^o[0])|(w[1]^o[1])|(w[2]^o[2])|(w[3]^o[3])|(w[4]^o[4]) == 0
}

// newSealer derives the keys from the namespace's ID.
func newSealer(fsid uint64) *sealer {
	derive := func(label string) []byte {
		h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("ogw nfs "+label+"\x00"), fsid))
		return h[:16]
	}
	block := func(label string) cipher.Block {
		b, err := aes.NewCipher(derive(label))
		if err != nil {
			panic(err) // the key's length is right
		}
		return b
	}
	return &sealer{
		fsid:    binary.BigEndian.Uint64(derive("fsid")),
		handles: block("handle"),
		cookies: block("cookie"),
	}
}

// append appends the handle's bytes to b.
func (s *sealer) append(b []byte, h handle) []byte {
	n := len(b)
	b = append(b, handleVersion, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.export)
	b = binary.BigEndian.AppendUint64(b, s.fsid)
	b = binary.BigEndian.AppendUint64(b, uint64(h.ino))
	b = binary.BigEndian.AppendUint64(b, uint64(h.gen))
	var mac [aes.BlockSize]byte
	cbcMAC(s.handles, &mac, b[n:])
	return append(b, mac[:macBytes]...)
}

// parse returns the handle, ErrBadHandle for what this version never made,
// and ErrStale for a handle of another namespace.
func (s *sealer) parse(b []byte) (handle, error) {
	if len(b) != handleBytes || b[0] != handleVersion {
		return handle{}, ErrBadHandle
	}
	words := wordsOf(b)
	slot := &s.valid[words[2]%validSlots] // by inode
	if v := slot.Load(); v != nil && v.bytes.equal(&words) {
		return v.h, nil
	}
	if binary.BigEndian.Uint64(b[8:]) != s.fsid {
		return handle{}, ErrStale
	}
	var mac [aes.BlockSize]byte
	cbcMAC(s.handles, &mac, b[:handleBytes-macBytes])
	if subtle.ConstantTimeCompare(mac[:macBytes], b[handleBytes-macBytes:]) != 1 {
		return handle{}, ErrBadHandle
	}
	h := handle{
		export: binary.BigEndian.Uint32(b[4:]),
		ino:    vfs.Ino(binary.BigEndian.Uint64(b[16:])),
		gen:    binary.BigEndian.Uint32(b[28:]),
	}
	slot.Store(&validHandle{words, h})
	return h, nil
}

// Cookies of the entries that every directory has, and the first one of the
// rest (0 means the start, RFC 1813 section 3.3.16).
const (
	cookieDot    = 1
	cookieDotDot = 2
	cookieFirst  = 16
)

// cookie returns the cookie of a position: 63 bits of a keyed digest, so
// that nobody can make names that collide, and no client sees a negative
// offset.
func (s *sealer) cookie(pos string) uint64 {
	var mac [aes.BlockSize]byte
	binary.BigEndian.PutUint64(mac[:], uint64(len(pos))) // makes CBC-MAC sound for any length
	s.cookies.Encrypt(mac[:], mac[:])
	cbcMAC(s.cookies, &mac, []byte(pos))
	c := binary.BigEndian.Uint64(mac[:]) >> 1
	if c < cookieFirst {
		c += cookieFirst
	}
	return c
}

// cbcMAC chains data, zero-padded, into mac.
func cbcMAC(b cipher.Block, mac *[aes.BlockSize]byte, data []byte) {
	for len(data) > 0 {
		n := subtle.XORBytes(mac[:], mac[:], data)
		data = data[n:]
		b.Encrypt(mac[:], mac[:])
	}
}
