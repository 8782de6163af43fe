package vfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster/local"
)

// flipByte changes one byte of a file.
func flipByte(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	want(t, err, nil)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	want(t, err, nil)
	b[0] ^= 0x40
	_, err = f.WriteAt(b[:], off)
	want(t, err, nil)
	want(t, f.Sync(), nil)
}

func readObject(fs *FS, bucket, key string) ([]byte, error) {
	return readUpTo(fs, bucket, key, MaxFileBytes)
}

// readUpTo is readObject for one whose size may be anything.
func readUpTo(fs *FS, bucket, key string, limit int64) ([]byte, error) {
	o, err := fs.GetObject(bg, ObjectName{bucket, key}, GetOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(io.NewSectionReader(o, 0, min(o.Info.Size, limit)))
}

// TestScrub: a pass finds what the medium damaged, in segments and in files,
// keeps it listed through a start, and lets go of it when it is gone. Reading
// the damaged is an error, and the rest is served.
func TestScrub(t *testing.T) {
	dir := t.TempDir()
	open := func() (*FS, func()) {
		c, err := local.Open(bg, local.Options{Dir: dir})
		want(t, err, nil)
		fs, err := Open(bg, c, Config{NoBackground: true, ScrubBytes: 1 << 30})
		want(t, err, nil)
		return fs, func() {
			want(t, fs.Close(bg), nil)
			want(t, c.Close(), nil)
		}
	}
	fs, closeAll := open()
	_, err := fs.CreateBucket(bg, "bbb", Root)
	want(t, err, nil)
	bodies := map[string][]byte{}
	for key, size := range map[string]int{"inline": 1000, "segment": 300_000, "file": 5 << 20, "healthy": 200_000} {
		body := bytes.Repeat([]byte(key), size/len(key))
		bodies[key] = body
		_, err := fs.PutObject(bg, ObjectName{"bbb", key}, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
		want(t, err, nil)
	}
	want(t, fs.scrub.Pass(bg, 0), nil)
	if s := fs.Scrub(bg); s.Running || s.Finished.IsZero() || s.Blobs < 3 || s.Bytes < 5<<20 || len(s.Damaged) != 0 || s.Rate != 1<<30 {
		t.Fatalf("%+v", s)
	}
	var paths []string
	for _, key := range []string{"segment", "file"} {
		_, at, err := fs.Whereis(bg, "bbb/"+key)
		want(t, err, nil)
		where := at[0].Nodes[0]
		off := int64(100_000)
		if strings.HasSuffix(where.Path, ".seg") {
			off += segmentOffset(t, where.Detail)
		}
		flipByte(t, where.Path, off)
		paths = append(paths, where.Path)
	}
	want(t, fs.scrub.Pass(bg, 0), nil)
	check := func(fs *FS) {
		t.Helper()
		damaged := fs.Scrub(bg).Damaged
		if len(damaged) != 2 {
			t.Fatalf("%+v", damaged)
		}
		for _, d := range damaged {
			if !slices.Contains(paths, d.Path) || !strings.Contains(d.Error, "checksum") || d.Found.IsZero() || len(d.Blob) != 32 {
				t.Errorf("%+v", d)
			}
		}
		for key, body := range bodies {
			got, err := readObject(fs, "bbb", key)
			switch key {
			case "segment", "file":
				if !errors.Is(err, ErrCorrupt) || !bytes.HasPrefix(body, got) {
					t.Errorf("%s: %d bytes, %v", key, len(got), err)
				}
			default:
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("%s: %d bytes, %v", key, len(got), err)
				}
			}
		}
		rep, err := fs.Check(bg, CheckOptions{Repair: true})
		want(t, err, nil)
		n := 0
		for _, p := range rep.Problems {
			if p.Kind == "damaged-blob" && !p.Repaired {
				n++
			}
		}
		if n != 2 {
			t.Errorf("check: %+v", rep.Problems)
		}
	}
	check(fs)
	closeAll()
	fs, closeAll = open()
	defer func() { closeAll() }()
	check(fs)
	flipByte(t, paths[1], 100_000) // mended
	_, err = fs.DeleteObject(bg, ObjectName{"bbb", "segment"}, DeleteOptions{})
	want(t, err, nil)
	_, err = fs.Collect(bg)
	want(t, err, nil)
	_, err = fs.Check(bg, CheckOptions{Repair: true})
	want(t, err, nil)
	if d := fs.Scrub(bg).Damaged; len(d) != 0 {
		t.Errorf("still in quarantine: %+v", d)
	}
	if got, err := readObject(fs, "bbb", "file"); err != nil || !bytes.Equal(got, bodies["file"]) {
		t.Errorf("mended: %d bytes, %v", len(got), err)
	}
}

// segmentOffset reads the offset that Locate names.
func segmentOffset(t *testing.T, detail string) int64 {
	t.Helper()
	_, digits, ok := strings.Cut(detail, "offset ")
	if !ok {
		t.Fatalf("no offset in %q", detail)
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// TestScrubRate: a pass takes the time that its rate allows, and can be
// stopped and gone on with.
func TestScrubRate(t *testing.T) {
	fs := openTest(t, openLocal(t))
	_, err := fs.CreateBucket(bg, "bbb", Root)
	want(t, err, nil)
	body := make([]byte, 100_000)
	for i := range 10 {
		_, err := fs.PutObject(bg, ObjectName{"bbb", string(rune('a' + i))}, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
		want(t, err, nil)
	}
	begun := time.Now()
	want(t, fs.scrub.Pass(bg, 2_000_000), nil)
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("1 MB at 2 MB/s took %v", took)
	}
	ctx, stop := contextAfter(50 * time.Millisecond)
	defer stop()
	if err := fs.scrub.Pass(ctx, 500_000); err == nil {
		t.Fatal("the pass was not stopped")
	}
	s := fs.Scrub(bg)
	if !s.Running || s.Blobs == 0 || s.Blobs == 10 {
		t.Fatalf("%+v", s)
	}
	want(t, fs.scrub.Pass(bg, 0), nil)
	if s := fs.Scrub(bg); s.Running || s.Blobs != 10 {
		t.Errorf("after it went on: %+v", s)
	}
}

func contextAfter(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(bg, d)
}
