package vfs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/vfs/internal/feed"
)

// TestProcesses: of several processes that share a store, each sees what another
// has stored when it looks a name up or opens a file, and within feed.StaleBound
// in a file that it has open; what the other has not stored yet, nobody sees.
func TestProcesses(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { want(t, c.Close(), nil) })
	here, there := openBeside(t, beside(t, c)), openBeside(t, beside(t, c))
	b, err := here.CreateBucket(bg, "bucket", Root)
	want(t, err, nil)
	a, writer, _, err := here.Create(bg, Root, b.Ino, "f", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
	want(t, err, nil)
	reader, err := there.Open(bg, Root, a.Ino, OpenRead)
	want(t, err, nil)
	text := func(f *File) string {
		b := make([]byte, 10)
		n, _ := f.ReadAt(bg, b, 0)
		return string(b[:n])
	}
	opened := func() string {
		f, err := there.Open(bg, Root, a.Ino, OpenRead)
		want(t, err, nil)
		defer f.Close(bg)
		return text(f)
	}
	if got := text(reader); got != "" {
		t.Errorf("before it is written: %q", got)
	}
	_, err = writer.WriteAt(bg, []byte("text"), 0)
	want(t, err, nil)
	if got := opened(); got != "" {
		t.Errorf("before it is stored: %q", got)
	}
	want(t, writer.Sync(bg), nil)
	if got := opened(); got != "text" {
		t.Errorf("opened: %q", got)
	}
	_, err = here.PutObject(bg, ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader("new"), PutOptions{Size: 3})
	want(t, err, nil)
	begin := time.Now()
	for text(reader) != "new" {
		if time.Since(begin) > feed.StaleBound+time.Minute { // on a busy machine
			t.Fatalf("what is open has %q", text(reader))
		}
		time.Sleep(feed.StaleBound / 20)
	}
	st, err := there.GetAttr(bg, a.Ino)
	want(t, err, nil)
	if st.Size != 3 {
		t.Errorf("size %d", st.Size)
	}
	want(t, here.Unlink(bg, Root, b.Ino, "f"), nil)
	if _, err := there.Resolve(bg, Root, "bucket/f", true); !errors.Is(err, ErrNotExist) {
		t.Errorf("a removed name: %v", err)
	}
}
