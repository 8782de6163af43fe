package fileio

import (
	"os"
	"path/filepath"
	"testing"
)

// dropping drops each file that it opens, as who removes it meanwhile.
type dropping struct {
	Disk
	handles *Handles
}

func (d dropping) Open(path string) (File, error) {
	f, err := d.Disk.Open(path)
	d.handles.Drop(path)
	return f, err
}

// TestDropWhileOpened: a file that was dropped while a reader opened it is closed with that.
func TestDropWhileOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHandles(10)
	h.Disk = dropping{NewOS(dir), h}
	f, err := h.Get(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Error(err)
	}
	h.Put(f)
	if h.CloseIdle() {
		t.Error("it stayed open")
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("it was not closed")
	}
}
