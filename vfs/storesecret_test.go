package vfs

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// TestStoreSecret: all who ask at the same time, and a process later, get the
// same secret, and another one under another name.
func TestStoreSecret(t *testing.T) {
	store := mem.New(mem.Options{})
	fs := openTestWith(t, store, Config{})
	var wait sync.WaitGroup
	got := make([][]byte, 8)
	for i := range got {
		wait.Go(func() { got[i], _ = fs.StoreSecret(bg, "nfs") })
	}
	wait.Wait()
	for _, s := range got {
		if len(s) != StoreSecretBytes || !bytes.Equal(s, got[0]) || bytes.Equal(s, make([]byte, len(s))) {
			t.Fatalf("%d bytes, all the same %v", len(s), bytes.Equal(s, got[0]))
		}
	}
	other, err := fs.StoreSecret(bg, "other")
	want(t, err, nil)
	if bytes.Equal(other, got[0]) {
		t.Error("another name has the same secret")
	}
	second, err := Open(bg, store, Config{NoBackground: true}) // the store is closed with the first
	want(t, err, nil)
	again, err := second.StoreSecret(bg, "nfs")
	want(t, err, nil)
	if !bytes.Equal(again, got[0]) {
		t.Error("another process has another secret")
	}
	for _, name := range []string{"", string(make([]byte, maxSettingNameBytes+1))} {
		if _, err := fs.StoreSecret(bg, name); !errors.Is(err, ErrInvalid) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}

// TestDamagedStoreSecret: half a secret is none, and is not replaced by one
// that would make all handles stale.
func TestDamagedStoreSecret(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{})
	want(t, fs.update(bg, func(c cluster.Txn, _ *op) error {
		return c.Set(record.StoreSecretKey("nfs"), []byte{record.StoreSecretClear, 1, 2})
	}), nil)
	_, err := fs.StoreSecret(bg, "nfs")
	want(t, err, ErrCorrupt)
}
