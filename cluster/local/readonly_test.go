package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/cluster"

	"golang.org/x/sys/unix"
)

// TestReadOnlyMedium: a file system that becomes read-only, as ext4 does after
// an error, fails writes as such; reads go on, and after it is writable again
// and the store was opened again, all that was acknowledged is there.
func TestReadOnlyMedium(t *testing.T) {
	disk := smallDisk(t, "ext4")
	dir := filepath.Join(disk, "data")
	c := openAt(t, Options{Dir: dir})
	ids := []cluster.BlobID{{Content: 1, Seq: 1}, {Content: 2, Seq: 2}}
	for i, id := range ids {
		if err := storeBlob(c.Blobs, id, seedBytes(3+4*i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("v")) }); err != nil {
		t.Fatal(err)
	}
	if err := unix.Syncfs(dirFD(t, disk)); err != nil {
		t.Fatal(err)
	}
	trigger := "/sys/fs/ext4/" + loopOf(t, disk) + "/trigger_fs_error"
	if err := os.WriteFile(trigger, []byte("test"), 0); err != nil {
		t.Skipf("cannot make the file system fail here: %v", err)
	}
	isRefused := func(err error) bool {
		return errors.Is(err, cluster.ErrReadOnly) || errors.Is(err, cluster.ErrUnavailable)
	}
	set := func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("new")) }
	for range 3 {
		if err := c.KV.Update(ctx, set); !isRefused(err) {
			t.Errorf("a transaction on a read-only medium: %v", err)
		}
		if err := storeBlob(c.Blobs, cluster.BlobID{Content: 3, Seq: 3}, seedBytes(7)); !isRefused(err) {
			t.Errorf("a blob on a read-only medium: %v", err)
		}
	}
	if err := c.Writable(); !isRefused(err) {
		t.Errorf("a store on a read-only medium takes writes, it says: %v", err)
	}
	for i, id := range ids {
		if err := readBack(c.Blobs, id, seedBytes(3+4*i)); err != nil {
			t.Errorf("a read on a read-only medium: %v", err)
		}
	}
	c.Close() // its error is what the medium says
	if _, err := Open(ctx, Options{Dir: dir}); !isRefused(err) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("Open on a read-only medium: %v", err)
	}
}

func dirFD(t *testing.T, dir string) int {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// loopOf returns the name of the loop device that is mounted on dir.
func loopOf(t *testing.T, dir string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == dir {
			return filepath.Base(f[0])
		}
	}
	t.Fatalf("%s is not mounted", dir)
	return ""
}
