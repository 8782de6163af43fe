package vfs

import (
	"bytes"
	"errors"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// oldReads is a run that is shown what pairs were, except for one, and thrown away
// therefore.
type oldReads struct {
	cluster.Reader
	pairs map[string][]byte
	now   []byte
}

var errOld = errors.New("old reads")

func (r *oldReads) Get(key []byte) ([]byte, error) {
	if bytes.Equal(key, r.now) {
		return r.Reader.Get(key)
	}
	return r.pairs[string(key)], nil
}

func (r *oldReads) Settle() error { return errOld }

// TestPoliciesOfOldReads: a run that is thrown away leaves nothing in the memory of
// policies, which goes by the revision that is stored.
func TestPoliciesOfOldReads(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	c.inline(bob, allow("s3:GetObject", rights.ARNPrefix+"bkt/k"))
	old := map[string][]byte{}
	want(t, c.fs.kv.View(bg, func(r cluster.Reader) error {
		return r.Scan(nil, nil, cluster.ScanOptions{}, func(key, value []byte) error {
			old[string(key)] = bytes.Clone(value)
			return nil
		})
	}), nil)
	c.inline(bob, deny("s3:GetObject", rights.ARNPrefix+"bkt/k"))
	err := c.fs.kv.View(bg, func(r cluster.Reader) error {
		_, err := c.fs.IAM().SetOf(&oldReads{r, old, record.RevisionKey()}, c.subject("bob").User)
		return err
	})
	if !errors.Is(err, errOld) {
		t.Errorf("old reads settled: %v", err)
	}
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
}
