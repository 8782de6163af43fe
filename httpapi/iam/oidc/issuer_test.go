package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"ogw/vfs/iam"
)

// idp is a provider whose keys can change.
type idp struct {
	*httptest.Server
	mu      sync.Mutex
	keys    *oidctest.Server
	fetches atomic.Int64 // of keys
}

func (p *idp) rotate(t *testing.T, id string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: id, Algorithm: "ES256"}}}
	p.keys.SetIssuer(p.URL)
	return key
}

func (p *idp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	keys := p.keys
	p.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "openid-configuration") {
		p.fetches.Add(1)
	}
	keys.ServeHTTP(w, r)
}

// TestUnknownKeys: who sends tokens with keys that are not there, as many as can be, makes
// the issuer be asked once a pause, and keeps no key out that it began to use.
func TestUnknownKeys(t *testing.T) {
	p := &idp{}
	p.Server = httptest.NewTLSServer(p)
	defer p.Close()
	old := p.rotate(t, "old")
	sum := sha1.Sum(p.Certificate().Raw)
	provider := iam.Provider{URL: strings.TrimPrefix(p.URL, "https://"), Audiences: []string{"ogw"}, Thumbprints: []string{hex.EncodeToString(sum[:])}}
	v := New(time.Now)
	v.pause = 100 * time.Millisecond
	verify := func(key *ecdsa.PrivateKey, id string) error {
		token := oidctest.SignIDToken(key, id, "ES256", fmt.Sprintf(`{"iss":%q,"aud":"ogw","sub":"s","exp":%d}`, p.URL, time.Now().Add(time.Hour).Unix()))
		_, err := v.Verify(t.Context(), token, func(context.Context, string) (iam.Provider, error) { return provider, nil })
		return err
	}
	if err := verify(old, "old"); err != nil {
		t.Fatal(err)
	}
	begin, before := time.Now(), p.fetches.Load()
	stop := make(chan struct{})
	var attackers sync.WaitGroup
	for i := range 8 {
		attackers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := verify(old, fmt.Sprintf("none-%d-%d", i, n)); !errors.Is(err, ErrInvalid) {
					t.Errorf("a key that is not there: %v", err)
					return
				}
			}
		})
	}
	for i := range 3 {
		id := fmt.Sprint("new-", i)
		key := p.rotate(t, id)
		// The first fetch may have begun before.
		for n := p.fetches.Load() + 2; p.fetches.Load() < n; runtime.Gosched() {
			if time.Since(begin) > time.Minute {
				t.Fatalf("nobody fetches the keys: %d", p.fetches.Load())
			}
		}
		if err := verify(key, id); err != nil {
			t.Errorf("rotation %d: %v", i, err)
		}
	}
	close(stop)
	attackers.Wait()
	if n, most := p.fetches.Load()-before, int64(time.Since(begin)/v.pause)+2; n > most {
		t.Errorf("%d fetches in %v, at most %d expected", n, time.Since(begin), most)
	}
}
