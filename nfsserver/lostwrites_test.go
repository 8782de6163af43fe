package nfsserver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// fullKV takes nothing while it is full.
type fullKV struct {
	cluster.KV
	full atomic.Bool
}

func (k *fullKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if k.full.Load() {
		return cluster.ErrNoSpace
	}
	return k.KV.Update(ctx, fn)
}

// TestLossOfAnotherCommit: a COMMIT that finds nothing to store, since another one is about to tell
// that it was lost, answers with another verifier.
func TestLossOfAnotherCommit(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, dir, _ := c.mkdir(c.root, "bucket", set{})
	_, fh, _ := c.create(dir, "f", createUnchecked, set{})
	wrote := c.put(fh, "text", unstable)
	if _, err := s.fs.PutObject(t.Context(), vfs.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("object"), vfs.PutOptions{Size: 6}); err != nil {
		t.Fatal(err)
	}
	files := s.srv.files
	files.mu.Lock()
	for _, f := range files.files { // the other COMMIT
		if err := f.file.Sync(t.Context()); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("nothing was lost: %v", err)
		}
	}
	files.mu.Unlock()
	if st, v := c.commit(fh); st == OK && v == wrote {
		t.Error("the same verifier after the data was lost")
	}
}

// TestLostWrite: the verifier is another one after data was lost, also of a WRITE that noted that
// the file is unstable before another client's COMMIT took that back, and wrote after it.
func TestLostWrite(t *testing.T) {
	disk := mem.NewDisk()
	clu := mem.New(mem.Options{Disk: disk})
	kv := &fullKV{KV: clu.KV}
	clu.KV = kv
	s := openSiteOver(t, disk, clu, vfs.Config{}, everyone)
	c := s.mount("/", 0)
	_, fh, _ := c.create(c.root, "f", createUnchecked, set{})
	wrote := c.put(fh, "text", unstable)
	files := s.srv.files
	files.mu.Lock()
	for _, f := range files.files {
		f.unstable.Store(false) // as the COMMIT does first
	}
	files.mu.Unlock()
	kv.full.Store(true)
	files.sweep(true)
	kv.full.Store(false)
	if st, v := c.commit(fh); st != OK || v == wrote {
		t.Errorf("%v, the same verifier after the data was lost", st)
	}
}
