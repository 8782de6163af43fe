package fair

import (
	"slices"
	"testing"
)

// Many clients behind one address put at once: what came of the bodies with their
// heads takes no shares, also where memory is little. In what is encrypted nobody
// knows where a head ends.
func TestBodiesWithHeads(t *testing.T) {
	const little, clients = 4 << 20, 100
	put := append([]byte("PUT /a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 3900\r\n\r\n"), make([]byte, 3900)...)
	behind := append([]byte("GET /a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"), make([]byte, 3900)...)
	encrypted := slices.Clone(put)
	encrypted[0] = tlsHandshake
	for _, c := range []struct {
		name string
		came []byte
		all  bool
	}{{"clear", put, true}, {"encrypted", encrypted, false}, {"behind a request", behind, false}} {
		pool, kept := NewPool(little), 0
		for range clients {
			h := &headCount{pool: pool}
			if h.came(c.came) {
				kept++
			}
		}
		if (kept == clients) != c.all {
			t.Errorf("%s: %d of %d are kept", c.name, kept, clients)
		}
	}
}
