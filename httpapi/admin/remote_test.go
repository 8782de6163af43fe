package admin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func remote(t *testing.T, base string, c RemoteConfig) *Client {
	t.Helper()
	client, err := Remote(base, c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A token goes to the server that was meant, and to no other.
func TestRemoteTrust(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	cert := server.Certificate()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	pin := pinPrefix + base64.StdEncoding.EncodeToString(sum[:])
	other := pinPrefix + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))
	for _, c := range []struct {
		RemoteConfig
		ok bool
	}{
		{RemoteConfig{}, false}, {RemoteConfig{CA: ca}, true}, {RemoteConfig{Pin: pin}, true},
		{RemoteConfig{Pin: other}, false}, {RemoteConfig{CA: ca, Pin: other}, false},
	} {
		asked = 0
		_, err := remote(t, server.URL, c.RemoteConfig).Status(context.Background())
		if (err == nil) != c.ok || (asked == 1) != c.ok {
			t.Errorf("%+v: %v, asked %d times", c.RemoteConfig, err, asked)
		}
	}
	if _, err := remote(t, server.URL, RemoteConfig{Pin: other}).Status(context.Background()); err == nil || !strings.Contains(err.Error(), pin) {
		t.Errorf("the message does not tell the key: %v", err)
	}
	for _, bad := range []string{"", "sha256//", "sha256//AAAA", "md5//AAAA", pin[8:]} {
		if _, err := ParsePin(bad); err == nil {
			t.Errorf("pin %q is accepted", bad)
		}
	}
}

func TestRemoteInClear(t *testing.T) {
	for base, ok := range map[string]bool{"http://127.0.0.1:1": true, "http://localhost:1": true, "http://[::1]:1": true,
		"https://gateway:1": true, "http://gateway:1": false, "http://127.0.0.1.example:1": false, "http://192.0.2.1:1": false} {
		if _, err := Remote(base, RemoteConfig{Token: "t"}); errors.Is(err, ErrInClear) == ok {
			t.Errorf("%s: %v", base, err)
		}
		if _, err := Remote(base, RemoteConfig{Token: "t", InClear: true}); err != nil {
			t.Errorf("%s, insecure: %v", base, err)
		}
	}
}

// Who answers with a redirection gets no second request.
func TestRemoteRedirect(t *testing.T) {
	stolen := ""
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := remote(t, server.URL, RemoteConfig{Token: "secret"}).Status(context.Background()); err == nil || stolen != "" {
		t.Errorf("%v, %q went on", err, stolen)
	}
}
