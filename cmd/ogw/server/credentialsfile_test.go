package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ogw/cluster/mem"
	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/vfs"
	"ogw/vfs/users"
)

// withRoot is a namespace with the user root and the key AK1, and a configuration
// whose data folder is empty.
func withRoot(t *testing.T) (*vfs.FS, *config.Config) {
	t.Helper()
	store := mem.New(mem.Options{})
	fs, err := vfs.Open(t.Context(), store, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(fs.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	cfg := config.Default()
	cfg.Cluster.Dir = t.TempDir()
	root := users.User{Name: RootUser, UID: 1, Admin: true, Founder: true, Keys: []users.AccessKey{{ID: "AK1", Secret: "secret-1"}}}
	if err := fs.Users().Add(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	return fs, cfg
}

// setKeys gives a user these keys and no others, as the IAM API does.
func setKeys(t *testing.T, fs *vfs.FS, name string, ids ...string) {
	t.Helper()
	err := fs.Users().Update(t.Context(), name, func(u *users.User) error {
		u.Keys = nil
		for _, id := range ids {
			u.Keys = append(u.Keys, users.AccessKey{ID: id, Secret: "secret-of-" + id})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kept fails unless the file has the key of an ID, "" for no file.
func kept(t *testing.T, c *credentials, id string) {
	t.Helper()
	key, err := readCredentials(c.path)
	if named := c.file(); (named == c.path) != (id != "") || id == "" && named != "" {
		t.Errorf("%q is named as the file with key %q", named, id)
	}
	if id == "" && !errors.Is(err, os.ErrNotExist) || id != "" && (err != nil || key.ID != id || key.Secret != "secret-of-"+id) {
		t.Errorf("the file has %+v %v, want %q", key, err, id)
	}
}

// TestCredentialsFollow: the file has the key of the user that came with the store,
// whoever changes it.
func TestCredentialsFollow(t *testing.T) {
	fs, cfg := withRoot(t)
	c := openCredentials(cfg, vfs.Config{}, fs, slog.New(slog.DiscardHandler))
	if err := fs.Users().Add(t.Context(), users.User{Name: "ann", UID: 2}); err != nil {
		t.Fatal(err)
	}
	setKeys(t, fs, "ann", "AKANN")
	kept(t, c, "")
	setKeys(t, fs, RootUser, "AK2", "AK3")
	kept(t, c, "AK2")
	if _, err := fs.Users().Rename(t.Context(), RootUser, "boss"); err != nil {
		t.Fatal(err)
	}
	setKeys(t, fs, "boss", "AK3")
	kept(t, c, "AK3")
	setKeys(t, fs, "boss") // the file would hold one that is not good
	kept(t, c, "")
	setKeys(t, fs, "boss", "AK4")
	kept(t, c, "AK4")

	// What another process changed, or one that died, is made up for at the next start.
	fs.Users().OnFounderKeys(nil)
	setKeys(t, fs, "boss", "AK5")
	c = openCredentials(cfg, vfs.Config{}, fs, slog.New(slog.DiscardHandler))
	if made, err := c.ensureRoot(t.Context(), fs); made != nil || err != nil {
		t.Error(made, err)
	}
	kept(t, c, "AK5")
	// But a file that the operator moved away stays away.
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ensureRoot(t.Context(), fs); err != nil {
		t.Error(err)
	}
	kept(t, c, "")
	setKeys(t, fs, "boss", "AK6")
	if err := fs.Users().Remove(t.Context(), "boss"); err != nil {
		t.Fatal(err)
	}
	kept(t, c, "")
}

// TestSealedCredentials: where secrets are sealed the file goes, and what was
// left of writing it.
func TestSealedCredentials(t *testing.T) {
	fs, cfg := withRoot(t)
	c := openCredentials(cfg, vfs.Config{}, fs, slog.New(slog.DiscardHandler))
	setKeys(t, fs, RootUser, "AK2")
	kept(t, c, "AK2")
	if err := os.WriteFile(c.path+".123", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.sealed = true
	setKeys(t, fs, RootUser, "AK3")
	if left, _ := os.ReadDir(cfg.Cluster.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := c.ensureRoot(t.Context(), fs); err != nil {
		t.Error(err)
	}
	kept(t, c, "")
}

// TestRotateAtOnce: of rotations at the same time each is answered with its key, and
// the file ends with the one that is stored.
func TestRotateAtOnce(t *testing.T) {
	const rounds, clients = 20, 4
	fs, cfg := withRoot(t)
	c := openCredentials(cfg, vfs.Config{}, fs, slog.New(slog.DiscardHandler))
	api := admin.Local(admin.New(admin.Config{FS: fs, Logger: slog.New(slog.DiscardHandler)}))
	for round := range rounds {
		var wait sync.WaitGroup
		for range clients {
			wait.Go(func() {
				if u, err := api.Rotate(t.Context(), RootUser, false); err != nil || len(u.Keys) != 1 || u.Keys[0].Secret == "" {
					t.Errorf("round %d: %+v %v", round, u, err)
				}
			})
		}
		wait.Wait()
		key, err := readCredentials(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if _, stored, err := fs.Users().ByKey(t.Context(), key.ID); err != nil || stored.Secret != key.Secret {
			t.Errorf("round %d: the file has %s: %v", round, key.ID, err)
		}
	}
}

// TestRotateWithoutFile: a rotation that is stored is answered with its secret, which
// nobody has otherwise, also if the file cannot be written.
func TestRotateWithoutFile(t *testing.T) {
	fs, cfg := withRoot(t)
	var out bytes.Buffer
	c := openCredentials(cfg, vfs.Config{}, fs, slog.New(slog.NewTextHandler(&out, nil)))
	if err := os.MkdirAll(filepath.Join(c.path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	api := admin.Local(admin.New(admin.Config{FS: fs, Logger: slog.New(slog.DiscardHandler)}))
	u, err := api.Rotate(t.Context(), RootUser, false)
	if err != nil || len(u.Keys) != 1 || u.Keys[0].Secret == "" {
		t.Fatalf("%+v %v", u, err)
	}
	if n := strings.Count(out.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged: %s", &out)
	}
}

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
	if err := (&credentials{path: filepath.Join(dir, CredentialsName), sealed: true}).destroy(); err != nil {
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
