package vfs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
	"ogw/vfs/users"
)

// ring returns a Keyring of test keys, the first seals.
func ring(t testing.TB, keys ...byte) *seal.Keyring {
	t.Helper()
	if len(keys) == 0 {
		return nil
	}
	var lines []string
	for _, k := range keys {
		lines = append(lines, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{k}, seal.KeyBytes)))
	}
	r, err := seal.Parse(strings.Join(lines, "\n"))
	want(t, err, nil)
	return r
}

// secretsInStore returns the secrets that some pair of the store holds.
func secretsInStore(t testing.TB, c *cluster.Cluster, secrets ...string) (found []string) {
	t.Helper()
	want(t, c.KV.View(bg, func(r cluster.Reader) error {
		return r.Scan([]byte{0}, []byte{0xff}, cluster.ScanOptions{}, func(_, v []byte) error {
			for _, s := range secrets {
				if bytes.Contains(v, []byte(s)) {
					found = append(found, s)
				}
			}
			return nil
		})
	}), nil)
	return found
}

// TestSealedSecrets walks a store through the life of its keys: none, one, two,
// the second alone, a lost one.
func TestSealedSecrets(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			c := e.open(t)
			t.Cleanup(func() { want(t, c.Close(), nil) })
			var fs *FS
			open := func(keys ...byte) SealState {
				t.Helper()
				if fs != nil {
					want(t, fs.Close(bg), nil)
				}
				var err error
				fs, err = Open(bg, c, Config{NoBackground: true, Keys: ring(t, keys...)})
				want(t, err, nil)
				return fs.SealState()
			}
			t.Cleanup(func() { want(t, fs.Close(bg), nil) })
			good := func(keyID, secret string) {
				t.Helper()
				if _, k, err := fs.Users().ByKey(bg, keyID); err != nil || k.Secret != secret {
					t.Errorf("%s: %+v %v", keyID, k, err)
				}
			}
			locked := func(keyID string) {
				t.Helper()
				u, k, err := fs.Users().ByKey(bg, keyID)
				if !errors.Is(err, ErrSealed) || u.Name != "" || k.ID != "" {
					t.Errorf("%s: %+v %+v %v", keyID, u, k, err)
				}
			}
			open()
			want(t, fs.Users().Add(bg, users.User{Name: "ann", UID: 1, Keys: []users.AccessKey{{ID: "AK1", Secret: "secret-one", Created: 1}, {ID: "AK2", Secret: "secret-two", Created: 2}}}), nil)
			handles, err := fs.StoreSecret(bg, "handles")
			want(t, err, nil)
			all := []string{"secret-one", "secret-two", string(handles)}
			if found := secretsInStore(t, c, all...); len(found) != 3 {
				t.Errorf("in clear: %q", found)
			}

			if s := open(1); s.Sealed != 2 || len(s.Keys) != 1 || s.Missing != nil {
				t.Errorf("%+v", s)
			}
			if found := secretsInStore(t, c, all...); found != nil {
				t.Errorf("in clear: %q", found)
			}
			good("AK1", "secret-one")
			good("AK2", "secret-two")
			if again, err := fs.StoreSecret(bg, "handles"); err != nil || !bytes.Equal(again, handles) {
				t.Errorf("%x %v", again, err)
			}
			want(t, fs.Users().Update(bg, "ann", func(u *users.User) error {
				u.Keys = append(u.Keys, users.AccessKey{ID: "AK3", Secret: "secret-three", Created: 3})
				return nil
			}), nil)
			if found := secretsInStore(t, c, "secret-three"); found != nil {
				t.Error("a new secret is in clear")
			}
			if s := open(1); s.Sealed != 0 {
				t.Errorf("sealed again: %+v", s)
			}

			if s := open(2, 1); s.Sealed != 2 || len(s.Keys) != 2 {
				t.Errorf("%+v", s)
			}
			if s := open(2); s.Sealed != 0 || s.Missing != nil {
				t.Errorf("%+v", s)
			}
			good("AK3", "secret-three")

			// Without the key, and with another one, the secrets are locked and
			// nothing else is.
			for _, keys := range [][]byte{nil, {3}} {
				s := open(keys...)
				if len(s.Locked) != 3 || !slices.Equal(s.Missing, ring(t, 2).IDs()) || s.Sealed != 2*len(keys) {
					t.Errorf("%+v", s)
				}
				locked("AK1")
				if u, err := fs.Users().ByName(bg, "ann"); err != nil || len(u.Keys) != 3+len(keys) || u.Keys[0].Secret != "" {
					t.Errorf("%+v %v", u, err)
				}
				if other, err := fs.StoreSecret(bg, "handles"); err != nil || bytes.Equal(other, handles) {
					t.Errorf("%x %v", other, err)
				}
				// A change keeps the locked secrets, and new keys are good.
				id := "NEW" + string(rune('A'+len(keys)))
				want(t, fs.Users().Update(bg, "ann", func(u *users.User) error {
					u.Keys = append(u.Keys, users.AccessKey{ID: id, Secret: "secret-new", Created: 4})
					return nil
				}), nil)
				good(id, "secret-new")
				locked("AK3")
				wantErr(t, fs.Users().Update(bg, "ann", func(u *users.User) error {
					u.Keys = append(u.Keys, users.AccessKey{ID: "EMPTY", Secret: "", Created: 4})
					return nil
				}), ErrInvalid)
			}
			// The key is found again.
			if s := open(2, 3); s.Locked != nil || s.Missing != nil {
				t.Errorf("%+v", s)
			}
			for id, secret := range map[string]string{"AK1": "secret-one", "AK3": "secret-three", "NEWA": "secret-new", "NEWB": "secret-new"} {
				good(id, secret)
			}
			if again, err := fs.StoreSecret(bg, "handles"); err != nil || !bytes.Equal(again, handles) {
				t.Errorf("%x %v", again, err)
			}
			if found := secretsInStore(t, c, append(all, "secret-three", "secret-new")...); found != nil {
				t.Errorf("in clear: %q", found)
			}
		})
	}
}

// TestSealedSecretsSwapped: who can write to the store cannot put one user's
// sealed secret in the place of another's.
func TestSealedSecretsSwapped(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{Keys: ring(t, 1)})
	want(t, fs.Users().Add(bg, users.User{Name: "eve", UID: 1, Keys: []users.AccessKey{{ID: "AKEVE", Secret: "known-to-eve", Created: 1}}}), nil)
	want(t, fs.Users().Add(bg, users.User{Name: "root", UID: 2, Keys: []users.AccessKey{{ID: "AKROOT", Secret: "secret", Created: 1}}}), nil)
	eve, err := fs.Users().ByName(bg, "eve")
	want(t, err, nil)
	root, err := fs.Users().ByName(bg, "root")
	want(t, err, nil)
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		v, err := tx.Get(record.UserKey(eve.ID))
		want(t, err, nil)
		want(t, tx.Set(record.UserKey(root.ID), v), nil)
		return tx.Set(record.AccessIDKey("AKEVE"), []byte(root.ID))
	}), nil)
	if u, k, err := fs.Users().ByKey(bg, "AKEVE"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%+v %+v %v", u, k, err)
	}
}

// TestSealInterrupted ends the process at each commit of the sealing.
func TestSealInterrupted(t *testing.T) {
	cut := errors.New("the process ends")
	for _, op := range []mem.Op{mem.OpCommit, mem.OpCommitted, mem.OpSync} {
		for n := 1; ; n++ {
			disk := mem.NewDisk()
			c := mem.New(mem.Options{Disk: disk})
			makeFormat1(t, c)
			faults := &mem.Faults{}
			faults.FailFrom(n, cut, op)
			fs, err := Open(bg, mem.New(mem.Options{Disk: disk, Faults: faults}), Config{NoBackground: true, Keys: ring(t, 1)})
			if err == nil {
				faults.Clear()
				want(t, fs.Close(bg), nil)
				break
			}
			disk.PowerCut()
			after := mem.New(mem.Options{Disk: disk})
			checkFormat2(t, openTestWith(t, after, Config{Keys: ring(t, 1)}))
			if found := secretsInStore(t, after, "secret-ann", "secret-bob", "secret-root"); found != nil {
				t.Errorf("%s %d: in clear: %q", op, n, found)
			}
			want(t, after.KV.View(bg, func(r cluster.Reader) error {
				due, err := record.Counter(r, record.CounterErase)
				if due != 0 {
					t.Errorf("%s %d: nothing was erased", op, n)
				}
				return err
			}), nil)
		}
	}
}

// TestSealedSecretsOnDisk: no file of the data folder holds a secret that was
// in clear once, also that of a user who is gone, and of an older format.
func TestSealedSecretsOnDisk(t *testing.T) {
	dir := t.TempDir()
	start := func(keys ...byte) (*FS, func()) {
		c, err := local.Open(bg, local.Options{Dir: dir, CacheBytes: 8 << 20, SegmentBytes: 4 << 20})
		want(t, err, nil)
		fs, err := Open(bg, c, Config{NoBackground: true, Keys: ring(t, keys...)})
		want(t, err, nil)
		return fs, func() {
			want(t, fs.Close(bg), nil)
			want(t, c.Close(), nil)
		}
	}
	c, err := local.Open(bg, local.Options{Dir: dir, CacheBytes: 8 << 20, SegmentBytes: 4 << 20})
	want(t, err, nil)
	makeFormat1(t, c)
	want(t, c.Close(), nil)
	fs, stop := start()
	want(t, fs.Users().Add(bg, users.User{Name: "x", UID: 77, Keys: []users.AccessKey{{ID: "AKX", Secret: "secret-of-x", Created: 1}}}), nil)
	want(t, fs.Users().Remove(bg, "x"), nil)
	stop()
	secrets := []string{"secret-ann", "secret-bob", "secret-root", "secret-of-x"}
	if found := filesWith(t, dir, secrets); len(found) == 0 {
		t.Fatal("the secrets are not where they must be erased")
	}
	fs, stop = start(1)
	if found := filesWith(t, dir, secrets); found != nil {
		t.Errorf("while it runs: %q", found)
	}
	want(t, fs.Users().Add(bg, users.User{Name: "y", UID: 78, Keys: []users.AccessKey{{ID: "AKY", Secret: "secret-of-y", Created: 1}}}), nil)
	if _, k, err := fs.Users().ByKey(bg, "AKANN"); err != nil || k.Secret != "secret-ann" {
		t.Error(k, err)
	}
	stop()
	if found := filesWith(t, dir, append(secrets, "secret-of-y")); found != nil {
		t.Errorf("stopped: %q", found)
	}
}

// filesWith returns the files below dir that hold any of secrets. Those that go while it
// looks hold none.
func filesWith(t *testing.T, dir string, secrets []string) (found []string) {
	t.Helper()
	want(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, s := range secrets {
			if bytes.Contains(b, []byte(s)) {
				found = append(found, path+" "+s)
			}
		}
		return err
	}), nil)
	return found
}

// TestSealDamaged: records that cannot be read are counted and reported, and keep no
// other from being sealed.
func TestSealDamaged(t *testing.T) {
	c := mem.New(mem.Options{})
	fs := openTest(t, c)
	for i, name := range []string{"ann", "bob"} {
		want(t, fs.Users().Add(bg, users.User{Name: name, UID: uint32(i + 1), Keys: []users.AccessKey{{ID: "AK" + name, Secret: "secret-" + name, Created: 1}}}), nil)
	}
	bob, err := fs.Users().ByName(bg, "bob")
	want(t, err, nil)
	_, err = fs.StoreSecret(bg, "damaged")
	want(t, err, nil)
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		var e record.Encoder
		e.Field(7, []byte{1, 'x', 2, 0, 0}) // an access key whose secret has a form that is not known
		v, err := tx.Get(record.UserKey(bob.ID))
		want(t, err, nil)
		want(t, tx.Set(record.UserKey(bob.ID), append(slices.Clone(v), e.B...)), nil)
		return tx.Set(record.StoreSecretKey("damaged"), []byte{record.StoreSecretClear})
	}), nil)
	want(t, fs.Close(bg), nil)
	for range 2 {
		var log bytes.Buffer
		fs, err = Open(bg, c, Config{NoBackground: true, Keys: ring(t, 1), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		want(t, err, nil)
		if s := fs.SealState(); s.Damaged != 2 || strings.Count(log.String(), "damaged and was not sealed") != 2 ||
			!strings.Contains(log.String(), string(bob.ID)) || strings.Contains(log.String(), "secret-bob") {
			t.Errorf("%+v\n%s", s, &log)
		}
		if found := secretsInStore(t, c, "secret-ann", "secret-bob"); !slices.Equal(found, []string{"secret-bob"}) {
			t.Errorf("in clear: %q", found)
		}
		want(t, fs.Close(bg), nil)
	}
}
