package oidc

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"ogw/vfs/iam"
)

// TestKeysUnreachable: that the keys of a provider cannot be had says nothing about a
// token. That its issuer is spelled in another way than the provider's does.
func TestKeysUnreachable(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) }
	for name, c := range map[string]struct {
		keys  http.HandlerFunc // nil: as they should be
		slash string           // behind the issuer of the token
		quit  bool             // whoever asks leaves while the keys are fetched
		err   error
	}{
		"status":    {keys: broken, err: ErrUnreachable},
		"no JSON":   {keys: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, err: ErrUnreachable},
		"too large": {keys: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}", strings.Repeat(" ", maxDocument)) }, err: ErrUnreachable},
		"redirect":  {keys: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, err: ErrUnreachable},
		"cut": {keys: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			fmt.Fprint(w, "{}")
		}, err: ErrUnreachable},
		"cancelled":  {keys: broken, quit: true, err: ErrUnreachable},
		"good":       {},
		"with slash": {slash: "/", err: ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := &idp{}
			ctx, quit := context.WithCancel(t.Context())
			defer quit()
			p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.keys == nil || strings.HasSuffix(r.URL.Path, "openid-configuration") {
					p.ServeHTTP(w, r)
					return
				}
				if c.quit {
					quit()
					time.Sleep(50 * time.Millisecond)
				}
				c.keys(w, r)
			}))
			defer p.Close()
			key := p.rotate(t, "k")
			sum := sha1.Sum(p.Certificate().Raw)
			provider := iam.Provider{URL: strings.TrimPrefix(p.URL, "https://"), Audiences: []string{"ogw"}, Thumbprints: []string{hex.EncodeToString(sum[:])}}
			token := oidctest.SignIDToken(key, "k", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"ogw","sub":"s","exp":%d}`, p.URL+c.slash, time.Now().Add(time.Hour).Unix()))
			v := New(time.Now)
			v.pause = time.Millisecond
			_, err := v.Verify(ctx, token, func(context.Context, string) (iam.Provider, error) { return provider, nil })
			if !errors.Is(err, c.err) || c.err == ErrUnreachable && errors.Is(err, ErrInvalid) {
				t.Errorf("%v, want %v", err, c.err)
			}
		})
	}
}
