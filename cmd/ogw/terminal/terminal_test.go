package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What is kept is no terminal. That one is, ogw's own tests show.
func TestIs(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Is(f) || Is(&bytes.Buffer{}) {
		t.Error("a file or a buffer is a terminal")
	}
}
