package adversary

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// keyVariable holds the cluster key in the environment of a server.
const keyVariable = "OGW_CLUSTER_KEY"

func newClusterKey() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

// searched fails if a file below the data folder holds a secret.
func searched(t *testing.T, s *testenv.Server, what string, secrets ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(s.Data, func(path string, e fs.DirEntry, err error) error {
		var b []byte
		if err == nil && e.Type().IsRegular() {
			files++
			b, err = os.ReadFile(path)
		}
		if path != s.Data && os.IsNotExist(err) {
			return nil // Pebble removes files at any time
		}
		for i, secret := range secrets {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s: secret %d is in clear in %s", what, i, path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files searched: %v", files, err)
	}
}

// TestSecretsOnDisk: who can read the data folder, or a copy of it, finds no
// secret key once there is a cluster key: none of those that were in clear,
// none of users who are gone, none that is made later; killed or stopped.
func TestSecretsOnDisk(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice, gone := newPerson(t, s, "alice"), newPerson(t, s, "gone")
	alice.withBucket(t, s, "hers")
	s.OGW("user", "remove", "gone")
	secrets := []string{s.Secret, alice.secret, gone.secret}
	s.Stop()

	t.Setenv(keyVariable, newClusterKey())
	s.Start()
	searched(t, s, "while it runs", secrets...)
	bob := newPerson(t, s, "bob")
	must(t, "alice reads")(alice.s3(t, s, "GET", "/hers/secret", ""))
	must(t, "bob makes a bucket")(bob.s3(t, s, "PUT", "/his", ""))
	s.OGW("user", "rotate", "root")
	secrets = append(secrets, bob.secret)
	s.Kill()
	searched(t, s, "killed", secrets...)
	s.Start()
	must(t, "alice reads")(alice.s3(t, s, "GET", "/hers/secret", ""))
	must(t, "bob lists")(bob.s3(t, s, "GET", "/his", ""))
	s.Stop()
	searched(t, s, "stopped", secrets...)
	if b, _ := os.ReadFile(s.LogFile()); strings.Contains(string(b), bob.secret) || strings.Contains(string(b), os.Getenv(keyVariable)) {
		t.Error("a secret is in the log")
	}
}

// TestKilledWhileSealing: a server that is killed at any moment of its first
// start with a key leaves a store that the next one seals.
func TestKilledWhileSealing(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	s.Stop()
	t.Setenv(keyVariable, newClusterKey())
	for range 3 {
		s.Start()
		s.Kill()
	}
	s.Start()
	must(t, "alice reads")(alice.s3(t, s, "GET", "/hers/secret", ""))
	searched(t, s, "after kills", s.Secret, alice.secret)
}

// TestLostClusterKey: a locked secret lets nobody in, least of all with an
// empty one; data and new keys are good, and when the key is back so are the
// old ones.
func TestLostClusterKey(t *testing.T) {
	first, second := newClusterKey(), newClusterKey()
	t.Setenv(keyVariable, first)
	s := newServerWithKey(t)
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	for _, key := range []string{"", second} {
		s.Stop()
		t.Setenv(keyVariable, key)
		s.Start()
		nobody := alice
		nobody.secret = ""
		for _, p := range []person{alice, nobody} {
			refused(t, "S3 with a locked key")(p.s3(t, s, "GET", "/hers/secret", ""))
			status, body := p.rest(t, s, "GET", "/hers/secret", "")
			if status/100 == 2 {
				t.Errorf("REST with a locked key: %d %s", status, body)
			}
			byName := p
			byName.key = "alice"
			if status, body := byName.rest(t, s, "GET", "/hers/secret", ""); status/100 == 2 {
				t.Errorf("REST with a name and a locked key: %d %s", status, body)
			}
		}
		if log := s.Log(); !strings.Contains(log, "ogw user key add") {
			t.Errorf("the log does not say how to go on:\n%s", log)
		}
		anew := alice.withNewKey(t, s)
		if got := must(t, "with a new key")(anew.s3(t, s, "GET", "/hers/secret", "")); got != "of alice" {
			t.Errorf("read %q", got)
		}
	}
	// Rotation: the new key first, then alone.
	for _, keys := range []string{second + "," + first, second} {
		s.Stop()
		t.Setenv(keyVariable, keys)
		s.Start()
		must(t, "with all keys")(alice.s3(t, s, "GET", "/hers/secret", ""))
	}
}

func newServerWithKey(t *testing.T) *testenv.Server {
	t.Helper()
	return newServer(t, testenv.ServerOptions{REST: "users = true"})
}

// withNewKey gives p a further access key.
func (p person) withNewKey(t *testing.T, s *testenv.Server) person {
	t.Helper()
	var out struct{ Keys []struct{ ID, Secret string } }
	text := s.OGW("user", "key", "add", "--json", p.name)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	last := out.Keys[len(out.Keys)-1]
	p.key, p.secret = last.ID, last.Secret
	return p
}

// TestUnsafeKeyFiles: a key that others can read or replace, or that lies
// where backups are made, seals nothing.
func TestUnsafeKeyFiles(t *testing.T) {
	dir := testenv.TempDir(t)
	data, open := filepath.Join(dir, "data"), filepath.Join(dir, "open")
	for path, mode := range map[string]os.FileMode{data: 0o700, open: 0o777} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	storeIn(t, data)
	write := func(path string, mode os.FileMode) string {
		if err := os.WriteFile(path, []byte(newClusterKey()+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(filepath.Join(dir, "key"), 0o600)
	link := filepath.Join(open, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	try := func(path string) (string, error) {
		return testenv.Output(dir, os.Environ(), binary, "user", "list", "--dir", data, "--set", "cluster.key_file="+path)
	}
	if out, err := try(good); err != nil {
		t.Errorf("a good one: %v: %s", err, out)
	}
	for path, text := range map[string]string{
		write(filepath.Join(data, "key"), 0o600):   "inside of the data folder",
		write(filepath.Join(dir, "public"), 0o644): "chmod 600",
		write(filepath.Join(open, "key"), 0o600):   "others may write to folder",
		link:                                       "others may write to folder",
	} {
		if out, err := try(path); err == nil || !strings.Contains(out, text) {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
}
