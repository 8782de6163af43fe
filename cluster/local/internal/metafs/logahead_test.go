package metafs

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fillableFS counts the bytes that are written at an offset, and refuses them on demand.
type fillableFS struct {
	vfs.FS
	filled int
	err    error
}

type fillableFile struct {
	vfs.File
	fs *fillableFS
}

func (fs *fillableFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &fillableFile{f, fs}, nil
}

func (fs *fillableFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.wrap(fs.FS.Create(name, why))
}

// ReuseForWrite keeps what the file holds, as that of the operating system does.
func (fs *fillableFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.FS.Rename(old, name); err != nil {
		return nil, err
	}
	return fs.wrap(fs.FS.OpenReadWrite(name, why))
}

func (f *fillableFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.err != nil {
		return 0, f.fs.err
	}
	f.fs.filled += len(p)
	return f.File.WriteAt(p, off)
}

func write(t *testing.T, f vfs.File, p []byte) {
	t.Helper()
	_, err := f.Write(p)
	if err == nil {
		err = f.SyncData()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Small commits find zeros below them; whatever is written stands in the log, with
// nothing but zeros behind it.
func TestLogFilledAhead(t *testing.T) {
	below := &fillableFS{FS: vfs.NewMem()}
	f, err := aheadFS{below}.Create("1.log", forLog)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	const commits = 3 * aheadBytes / 5000
	for i := range commits {
		p := bytes.Repeat([]byte{byte(i) | 1}, 5000)
		all = append(all, p...)
		write(t, f, p)
		got := read(t, below, "1.log")
		if !bytes.HasPrefix(got, all) || len(bytes.Trim(got[len(all):], "\x00")) != 0 {
			t.Fatalf("after %d commits the log has other bytes", i+1)
		}
		if len(got) < len(all) {
			t.Fatalf("the log has %d bytes of %d", len(got), len(all))
		}
	}
	if want := 3 * aheadBytes; below.filled != want {
		t.Errorf("%d zeros were written, want %d", below.filled, want)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	// One that is used again has its bytes.
	before := below.filled
	f, err = aheadFS{below}.ReuseForWrite("1.log", "2.log", forLog)
	if err != nil {
		t.Fatal(err)
	}
	for range commits - aheadBytes/5000 {
		write(t, f, make([]byte, 5000))
	}
	if below.filled != before {
		t.Error("a log that was written before was filled")
	}
	for range 2 * aheadBytes / 5000 {
		write(t, f, make([]byte, 5000))
	}
	if below.filled == before {
		t.Error("a log that grows beyond the one before is not filled")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Large commits are not written twice, and other files are left alone.
func TestLogNotFilled(t *testing.T) {
	below := &fillableFS{FS: vfs.NewMem()}
	for name, why := range map[string]vfs.DiskWriteCategory{"1.log": forLog, "table": forFlush} {
		f, err := aheadFS{below}.Create(name, why)
		if err != nil {
			t.Fatal(err)
		}
		size := aheadSync + 1
		if why != forLog {
			size = 1
		}
		write(t, f, make([]byte, size))
		if below.filled != 0 {
			t.Errorf("%s: %d zeros", name, below.filled)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What cannot be filled is written all the same, and is not tried again.
func TestLogFillFails(t *testing.T) {
	below := &fillableFS{FS: vfs.NewMem(), err: errors.New("no space left")}
	f, err := aheadFS{below}.Create("1.log", forLog)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, []byte("one"))
	below.err = nil
	write(t, f, []byte("two"))
	if got := read(t, below, "1.log"); string(got) != "onetwo" {
		t.Errorf("the log has %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
