package nfsserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"

	"ogw/vfs"
)

// A file handle, 36 bytes, big-endian:
//
//	0  version (1)
//	1  the first bytes of the file-system ID, a digest of the namespace's own (3)
//	4  export ID: which export's rules apply (4)
//	8  inode (8)
//	16 generation (4)
//	20 code (16): AES-CBC-MAC of the bytes before, the whole file-system ID (8) and
//	   zeros (4), which are always as many
//
// Every entry of READDIRPLUS has one, and there are as many entries in a reply as
// have room: each byte here costs a listing half a percent.
//
// It holds nothing that a restart or another gateway over the same store
// would not know. The code's key comes from a secret that the store keeps and
// nobody is shown (handleSecret): handles cannot be made up, so an export's
// rules cannot be evaded by changing the ID in a handle.
//
// Version 1 had 40 bytes and a key that followed from the file-system ID, which status
// prints: whoever accepts it accepts forgeries. Version 2 had 48. Both are stale.
const (
	handleVersion = 3
	handleBytes   = handleBody + macBytes
	handleBody    = 20
	macBytes      = aes.BlockSize
	handleBytesV1 = 40
	handleBytesV2 = 48
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

// handleWords are the bytes of a handle; of the last word, half is zero.
type handleWords [5]uint64

func wordsOf(b []byte) (w handleWords) {
	for i := range len(w) - 1 {
		w[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	w[len(w)-1] = uint64(binary.BigEndian.Uint32(b[handleBytes-4:]))
	return w
}

// equal takes the same time whatever differs, as the code's comparison does.
func (w *handleWords) equal(o *handleWords) bool {
	return (w[0]^o[0])|(w[1]^o[1])|(w[2]^o[2])|(w[3]^o[3])|(w[4]^o[4]) == 0
}

// handleSecret names the secret of the store that handles are sealed with.
const handleSecret = "nfs/handles"

// newSealer derives the keys from the store's secret. What clients see as the
// file system's ID follows from the namespace's: it is a name, and stays.
func newSealer(fsid uint64, secret []byte) (*sealer, error) {
	handles, err := deriveBlock(secret, "handle")
	if err != nil {
		return nil, err
	}
	cookies, err := deriveBlock(secret, "cookie")
	if err != nil {
		return nil, err
	}
	shown := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("ogw nfs fsid\x00"), fsid))
	return &sealer{fsid: binary.BigEndian.Uint64(shown[:]), handles: handles, cookies: cookies}, nil
}

func deriveBlock(secret []byte, label string) (cipher.Block, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "ogw nfs "+label, aes.BlockSize)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// append appends the handle's bytes to b.
func (s *sealer) append(b []byte, h handle) []byte {
	n := len(b)
	b = binary.BigEndian.AppendUint32(b, handleVersion<<24|s.short())
	b = binary.BigEndian.AppendUint32(b, h.export)
	b = binary.BigEndian.AppendUint64(b, uint64(h.ino))
	b = binary.BigEndian.AppendUint32(b, h.gen)
	b = append(b, make([]byte, macBytes)...)
	s.code((*[macBytes]byte)(b[n+handleBody:]), b[n:])
	return b
}

// short is what a handle has of the file-system ID: enough to tell whose it is.
func (s *sealer) short() uint32 { return uint32(s.fsid >> 40) }

// code puts that of the first bytes of a handle into mac, which is zero. It may stand
// behind them: a variable of the caller would be one on the heap.
func (s *sealer) code(mac *[macBytes]byte, body []byte) {
	var text [2 * aes.BlockSize]byte
	copy(text[:], body[:handleBody])
	binary.BigEndian.PutUint64(text[handleBody:], s.fsid)
	cbcMAC(s.handles, mac, text[:])
}

// parse returns the handle, ErrBadHandle for what was never made, and
// ErrStale for a handle of another namespace, or of a version before.
func (s *sealer) parse(b []byte) (handle, error) {
	if len(b) == handleBytesV1 && b[0] == 1 || len(b) == handleBytesV2 && b[0] == 2 {
		return handle{}, ErrStale // clients then ask for the root anew, or their users mount again
	}
	if len(b) != handleBytes || b[0] != handleVersion {
		return handle{}, ErrBadHandle
	}
	words := wordsOf(b)
	slot := &s.valid[words[1]%validSlots] // by inode
	if v := slot.Load(); v != nil && v.bytes.equal(&words) {
		return v.h, nil
	}
	if binary.BigEndian.Uint32(b)&(1<<24-1) != s.short() {
		return handle{}, ErrStale
	}
	var mac [macBytes]byte
	s.code(&mac, b)
	if subtle.ConstantTimeCompare(mac[:], b[handleBody:]) != 1 {
		return handle{}, ErrBadHandle
	}
	h := handle{
		export: binary.BigEndian.Uint32(b[4:]),
		ino:    vfs.Ino(binary.BigEndian.Uint64(b[8:])),
		gen:    binary.BigEndian.Uint32(b[16:]),
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
