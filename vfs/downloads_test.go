package vfs

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"ogw/cluster/mem"
)

// A pass of the collector ends though another gateway goes on deleting.
func TestBesidePassEnds(t *testing.T) {
	p := openTwo(t)
	ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
	defer cancel()
	remove := func(i int) {
		key := "k" + strconv.Itoa(i)
		put(t, p.b, key, blobBody)
		_, err := p.b.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
		want(t, err, nil)
	}
	remove(0)
	passed := make(chan error, 1)
	go func() {
		_, err := p.a.Collect(ctx)
		passed <- err
	}()
	for i := 1; ; i++ {
		select {
		case err := <-passed:
			want(t, err, nil)
			return
		default:
			remove(i)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// download puts an object in pieces, opens it, has change change the key, and reads.
func download(t *testing.T, fs *FS, pieces, size int, change func()) {
	t.Helper()
	var all []byte
	for i := range pieces {
		body := bytes.Repeat([]byte{byte('a' + i)}, size)
		if i == 0 {
			put(t, fs, "pieces", string(body))
		} else {
			_, err := fs.AppendObject(bg, ObjectName{"bucket", "pieces"}, int64(len(all)), bytes.NewReader(body), PutOptions{Size: int64(len(body))})
			want(t, err, nil)
		}
		all = append(all, body...)
	}
	o, err := fs.GetObject(bg, ObjectName{"bucket", "pieces"}, GetOptions{})
	want(t, err, nil)
	defer o.Close()
	change()
	got, err := io.ReadAll(io.NewSectionReader(o, 0, int64(len(all))))
	if err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d of %d bytes, %v; as they were is %v", len(got), len(all), err, bytes.Equal(got, all))
	}
}

// What is being downloaded can be replaced or removed, however many extents it has, and
// whether these hold their bytes or name blobs.
func TestDownloadInPages(t *testing.T) {
	alone := func(t *testing.T) *FS {
		return bucketFS(t, openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: 64 << 10}))
	}
	two := func(t *testing.T) *FS { return openTwo(t).b }
	for _, x := range []struct {
		name         string
		open         func(t *testing.T) *FS
		pieces, size int
	}{
		{"blobs", alone, 6, 100_000},
		{"blobs beside", two, 6, 100_000},
		{"inline", alone, 6, 60_000},
	} {
		for _, how := range []string{"replace", "delete", "tags"} {
			t.Run(x.name+" "+how, func(t *testing.T) {
				fs := x.open(t)
				if x.size >= 100_000 {
					fs.contents.ExtentPage = 2
				}
				download(t, fs, x.pieces, x.size, func() {
					var err error
					switch how {
					case "replace":
						put(t, fs, "pieces", "other")
					case "delete":
						_, err = fs.DeleteObject(bg, ObjectName{"bucket", "pieces"}, DeleteOptions{})
					case "tags":
						err = fs.SetObjectTags(bg, ObjectName{"bucket", "pieces"}, "a=b")
					}
					want(t, err, nil)
				})
			})
		}
	}
}
