package metafs

import (
	"log/slog"
	"testing"

	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pausedCreate is a file system that calls made when a file is there, before who makes it is
// told.
type pausedCreate struct {
	vfs.FS
	made func()
}

func (fs *pausedCreate) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, why)
	if made := fs.made; made != nil {
		fs.made = nil
		made()
	}
	return f, err
}

// A mark that is written while a table is made has no print of it: a crash before the next one
// would find another file in its place.
func TestMarkBesideCreate(t *testing.T) {
	fs := &pausedCreate{FS: vfs.NewMem()}
	if err := fs.MkdirAll("/store/"+record.MetaDir, 0o700); err != nil {
		t.Fatal(err)
	}
	g := NewRollbackGuard(fs, "/store", func() bool { return false }, slog.New(slog.DiscardHandler))
	const name = "/store/" + record.MetaDir + "/000005.sst"
	for _, want := range []int{0, 1} {
		fs.made = g.Write
		f, err := g.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte("a table"))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if want == 1 {
			g.Write()
		}
		m, err := readMark(fs, "/store")
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Files) != want {
			t.Errorf("the mark has %v", m.Files)
		}
		if _, err := compare(m, fs, "/store/"+record.MetaDir); err != nil {
			t.Error(err)
		}
	}
}
