package vfs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// One ReadAt of an open file finds all of an object or all of the one before it.
func TestReadWhole(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		whole := func(gen, size int) string {
			head := fmt.Sprintf("%d %d ", gen, size)
			return head + strings.Repeat("v", size-len(head))
		}
		put := func(gen int) {
			text := whole(gen, []int{20, 30_000, 300, 200_000}[gen%4])
			if _, err := fs.PutObject(bg, ObjectName{"bucket", "f"}, strings.NewReader(text), PutOptions{Size: int64(len(text))}); err != nil {
				t.Error(err)
			}
		}
		put(0)
		a, err := fs.Resolve(bg, Root, "/bucket/f", true)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for gen, end := 1, time.Now().Add(time.Second); time.Now().Before(end); gen++ {
				put(gen)
			}
		}()
		b, parts, reads := make([]byte, 1<<20), 0, 0
		for stop := false; !stop; {
			select {
			case <-done:
				stop = true
			default:
			}
			f, err := fs.Open(bg, Root, a.Ino, OpenRead)
			if err != nil {
				t.Fatal(err)
			}
			n, err := f.ReadAt(bg, b, 0)
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			f.Close(bg)
			var gen, size int
			_, err = fmt.Sscan(string(b[:min(n, 40)]), &gen, &size)
			if reads++; err != nil || string(b[:n]) != whole(gen, size) {
				if parts++; parts < 4 {
					t.Errorf("%d bytes: %q", n, b[:min(n, 40)])
				}
			}
		}
		t.Logf("%d of %d reads show a part", parts, reads)
	})
}
