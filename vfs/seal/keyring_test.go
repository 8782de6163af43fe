package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func keyText(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, KeyBytes))
}

func mustParse(t *testing.T, lines ...string) *Keyring {
	t.Helper()
	k, err := Parse(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSeal(t *testing.T) {
	secret := []byte("a secret key")
	old := mustParse(t, keyText(1))
	sealed := old.Seal(secret, "user a")
	if bytes.Contains(sealed, secret) {
		t.Error("in clear")
	}
	if bytes.Equal(sealed, old.Seal(secret, "user a")) {
		t.Error("two seals are equal")
	}
	both := mustParse(t, "# the new one", keyText(2), "", " "+keyText(1)+"\r")
	for name, k := range map[string]*Keyring{"old": old, "both": both} {
		if got, err := k.Open(sealed, "user a"); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if !old.Current(sealed) || both.Current(sealed) || !both.Current(both.Seal(secret, "x")) || both.Current(nil) {
		t.Error("which key is current")
	}
	if ids := both.IDs(); len(ids) != 2 || ids[1] != KeyID(sealed) || ids[0] == ids[1] || ids[1] != old.IDs()[0] {
		t.Error(ids, KeyID(sealed))
	}
	if _, err := old.Open(sealed, "user b"); !errors.Is(err, ErrForged) {
		t.Error("another context", err)
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if got, err := old.Open(bad, "user a"); err == nil || got != nil {
			t.Errorf("byte %d: %q", i, got)
		}
		if got, err := old.Open(sealed[:i], "user a"); err == nil || got != nil {
			t.Errorf("%d bytes: %q", i, got)
		}
	}
	for name, k := range map[string]*Keyring{"another": mustParse(t, keyText(3)), "none": nil} {
		_, err := k.Open(sealed, "user a")
		if !errors.Is(err, ErrUnknownKey) || !strings.Contains(err.Error(), KeyID(sealed)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := old.Open(old.Seal(nil, ""), ""); err != nil || len(got) != 0 {
		t.Error("empty", got, err)
	}
}

func TestParse(t *testing.T) {
	short := base64.StdEncoding.EncodeToString(make([]byte, KeyBytes-1))
	for _, bad := range []string{"", "# nothing", "secret", short, keyText(0), keyText(1) + "\n" + short, keyText(1) + keyText(2),
		strings.Repeat(keyText(1)+"\n", maxKeys+1)} {
		_, err := Parse(bad)
		if !errors.Is(err, ErrBadKeys) || strings.Contains(err.Error(), short) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
