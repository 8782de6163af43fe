package metafs

import (
	"errors"
	"log/slog"
	"path"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// noTablesFS takes logs alone, as a disk without space for more.
type noTablesFS struct{ vfs.FS }

func (fs noTablesFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	if path.Ext(name) == ".sst" {
		return nil, errors.New("no table today")
	}
	return fs.FS.Create(name, why)
}

// After an error of the log there is no newer one on the disk: at the next start the
// zeros behind its end, or what the error left there, would be damage.
func TestFailedLogStaysNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashableMem()
		h, wait := NewHealth(slog.New(slog.DiscardHandler)), &SpaceWait{}
		wait.PebbleIsOpen()
		options := func(fs vfs.FS) *pebble.Options {
			return &pebble.Options{FS: fs, Logger: quiet{}}
		}
		db, err := pebble.Open("db", options(walErrorFS{aheadFS{noTablesFS{disk}}, h, wait}))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Set([]byte("key"), []byte("value"), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		_ = h.Fail(errors.New("input/output error"))
		if _, err := db.AsyncFlush(); err != nil { // a new log
			t.Fatal(err)
		}
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		_ = db.Close()

		db, err = pebble.Open("db", options(crashed))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		v, done, err := db.Get([]byte("key"))
		if err != nil || string(v) != "value" {
			t.Fatalf("%q, %v", v, err)
		}
		_ = done.Close()
	})
}

// quiet is a logger for Pebble.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(f) }
