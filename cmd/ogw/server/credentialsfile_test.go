package server

import (
	"os"
	"path/filepath"
	"testing"
)

// What is destroyed is ours, whatever the folder is called and the operator
// keeps beside it.
func TestDestroyCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	for _, d := range []string{dir, filepath.Join(dir, "credentials.d")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ours := []string{"credentials", "credentials.new", "credentials.123456"}
	theirs := []string{"credentials.bak", "credentials2", "mine"}
	for _, name := range append(ours, theirs...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (credentials{path: filepath.Join(dir, CredentialsName), sealed: true}).destroy(); err != nil {
		t.Fatal(err)
	}
	for _, name := range ours {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range theirs {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "secret" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
