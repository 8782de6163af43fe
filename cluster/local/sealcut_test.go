package local

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	ns "ogw/vfs"
	"ogw/vfs/seal"
	"ogw/vfs/users"
)

// sealCuts is how many of the moments of a conversion lose the power.
const sealCuts = 60

// holding returns the files of fs that hold text.
func (fs *crashFS) holding(text string) (found []string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for path, n := range fs.names {
		if n.dir || n.size == 0 {
			continue
		}
		b := make([]byte, n.size)
		if _, err := n.read(b, 0); err != nil || bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
	}
	return found
}

// TestPowerCutWhileSealing: a store gets its first key, and the power goes at
// any moment of that. The next start finds all users and objects, and leaves no
// secret in clear.
func TestPowerCutWhileSealing(t *testing.T) {
	const secret, body = "the-secret-of-ann", "content"
	keys, err := seal.Parse(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, seal.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	open := func(fs *crashFS, keys *seal.Keyring) (*ns.FS, func()) {
		t.Helper()
		cl, err := Open(ctx, stackOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		c := stackConfig()
		c.Keys = keys
		n, err := ns.Open(ctx, cl, c)
		if err != nil {
			t.Fatal(err)
		}
		return n, func() {
			if err := n.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := cl.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	fs := newCrashFS()
	n, stop := open(fs, nil)
	if _, err := n.CreateBucket(ctx, "bbb", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := n.PutObject(ctx, ns.ObjectName{Bucket: "bbb", Key: "k"}, strings.NewReader(body), ns.PutOptions{Size: int64(len(body))}); err != nil {
		t.Fatal(err)
	}
	if err := n.Users().Add(ctx, users.User{Name: "ann", UID: 1, Keys: []users.AccessKey{{ID: "AKANN", Secret: secret}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.StoreSecret(ctx, "handles"); err != nil {
		t.Fatal(err)
	}
	stop()
	if fs.holding(secret) == nil {
		t.Fatal("the secret is not where it must be erased")
	}

	check := func(fs *crashFS, what string) {
		t.Helper()
		n, stop := open(fs, keys)
		defer stop()
		if u, k, err := n.Users().ByKey(ctx, "AKANN"); err != nil || u.Name != "ann" || k.Secret != secret {
			t.Errorf("%s: %+v %+v %v", what, u, k, err)
		}
		if info, err := n.HeadObject(ctx, ns.ObjectName{Bucket: "bbb", Key: "k"}, ns.GetOptions{}); err != nil || info.Size != int64(len(body)) {
			t.Errorf("%s: %+v %v", what, info, err)
		}
		if found := fs.holding(secret); found != nil {
			t.Errorf("%s: in clear in %q", what, found)
		}
	}
	rng := rand.New(rand.NewPCG(11, 12))
	type cut struct {
		what string
		fs   *crashFS
	}
	var cuts []cut
	calls := 0
	fs.before = func(c *fsCall) (int, error) {
		if !c.kind.mutates() {
			return c.bytes, nil
		}
		calls++
		// A sample of them all: each has the same chance to be among the cuts.
		at := len(cuts)
		if at == sealCuts {
			if at = rng.IntN(calls); at >= sealCuts {
				return c.bytes, nil
			}
		} else {
			cuts = append(cuts, cut{})
		}
		cuts[at] = cut{string(c.kind) + " of " + c.path, fs.clone(anyMode(rng), rng)}
		return c.bytes, nil
	}
	_, stop = open(fs, keys)
	stop()
	fs.mu.Lock()
	fs.before = nil
	fs.mu.Unlock()
	check(fs, "without a cut")
	if len(cuts) < sealCuts {
		t.Errorf("only %d moments", len(cuts))
	}
	for _, c := range cuts {
		check(c.fs, c.what)
	}
}
