package adversary

import (
	"crypto/aes"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	be "encoding/binary"
	"encoding/json"
	"strconv"
	"testing"

	"ogw/integration/testenv/nfsclient"
)

// rootIno and rootGen name the root of every namespace.
const rootIno, rootGen = 1, 1

// TestNFSForgedHandle: who sees the file-system ID that status prints, and
// knows the export that the configuration names, cannot make a handle.
func TestNFSForgedHandle(t *testing.T) {
	s, c, _ := exportServer(t)
	var status struct {
		FSID string `json:"fsid"`
	}
	if err := json.Unmarshal([]byte(s.OGW("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	fsid, err := strconv.ParseUint(status.FSID, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Getattr(c.mount("/photos"))
	c.must("a handle that the server made", st, err)
	for name, x := range map[string]struct {
		fh   []byte
		want uint32
	}{
		"of the first form":                  {firstHandle(fsid), nfsclient.Stale},
		"of the second form":                 {secondHandle(t, fsid, idBytes(fsid)), nfsclient.Stale},
		"with a key from the ID":             {presentHandle(t, fsid, idBytes(fsid)), nfsclient.BadHandle},
		"with a key of nothing":              {presentHandle(t, fsid, make([]byte, 32)), nfsclient.BadHandle},
		"with a key from the printed status": {presentHandle(t, fsid, []byte(status.FSID)), nfsclient.BadHandle},
	} {
		st, err := c.Getattr(x.fh)
		c.want("a handle of the root "+name, x.want, st, err)
		if st, _, err := c.Lookup(x.fh, "private"); err != nil || st == nfsclient.OK {
			t.Errorf("a handle of the root %s: LOOKUP private: %d, %v", name, st, err)
		}
	}
}

// shownID is the file-system ID as clients see it, exportID what stands for /photos.
func shownID(fsid uint64) []byte {
	d := sha256.Sum256(append([]byte("ogw nfs fsid\x00"), idBytes(fsid)...))
	return d[:8]
}

func exportID() []byte {
	d := sha256.Sum256([]byte("/photos\x00"))
	return d[:4]
}

// earlierHead is what stood before the code of a handle of the root, of the
// export /photos, in both earlier forms.
func earlierHead(version byte, fsid uint64) []byte {
	b := append([]byte{version, 0, 0, 0}, exportID()...)
	b = append(b, shownID(fsid)...)
	b = be.BigEndian.AppendUint64(b, rootIno)
	return be.BigEndian.AppendUint64(b, rootGen)
}

func idBytes(fsid uint64) []byte { return be.BigEndian.AppendUint64(nil, fsid) }

// firstHandle is a handle as it was made when the ID was the secret.
func firstHandle(fsid uint64) []byte {
	key := sha256.Sum256(append([]byte("ogw nfs handle\x00"), idBytes(fsid)...))
	b := earlierHead(1, fsid)
	return append(b, code(key[:16], b)[:8]...)
}

// secondHandle is one as it was made when it had 48 bytes, with a guess for the secret.
func secondHandle(t *testing.T, fsid uint64, secret []byte) []byte {
	t.Helper()
	b := earlierHead(2, fsid)
	return append(b, code(handleKey(t, secret), b)...)
}

// presentHandle is one as it is made now, with a guess for the secret.
func presentHandle(t *testing.T, fsid uint64, secret []byte) []byte {
	t.Helper()
	b := append([]byte{3}, shownID(fsid)[:3]...)
	b = append(b, exportID()...)
	b = be.BigEndian.AppendUint64(b, rootIno)
	b = be.BigEndian.AppendUint32(b, rootGen)
	coded := append(append([]byte{}, b...), shownID(fsid)...)
	coded = append(coded, make([]byte, 4)...)
	return append(b, code(handleKey(t, secret), coded)...)
}

func handleKey(t *testing.T, secret []byte) []byte {
	t.Helper()
	key, err := hkdf.Key(sha256.New, secret, nil, "ogw nfs handle", aes.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// code is the AES-CBC-MAC of whole blocks.
func code(key, b []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key's length is right
	}
	mac := make([]byte, aes.BlockSize)
	for ; len(b) > 0; b = b[aes.BlockSize:] {
		subtle.XORBytes(mac, mac, b[:aes.BlockSize])
		block.Encrypt(mac, mac)
	}
	return mac
}
