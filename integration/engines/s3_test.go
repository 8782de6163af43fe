package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/s3"
	"ogw/integration/testenv"
)

func openS3(t *testing.T, o s3.Options) *s3.Blobs {
	t.Helper()
	b, err := s3.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// at are the options for the bucket of v.
func at(v *testenv.Versitygw, prefix string) s3.Options {
	return s3.Options{Endpoint: "http://" + v.Addr(), Bucket: "store", Prefix: prefix, AccessKey: v.Key, SecretKey: v.Secret}
}

func TestS3(t *testing.T) {
	t.Run("versitygw", func(t *testing.T) {
		v := testenv.StartVersitygw(t, "store")
		clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs { return openS3(t, at(v, newPrefix())) })
	})
	t.Run("Clients", func(t *testing.T) {
		v := testenv.StartVersitygw(t, "store")
		clustertest.TestBlobClients(t, func(t *testing.T) (a, b cluster.Blobs) {
			prefix := newPrefix()
			return openS3(t, at(v, prefix)), openS3(t, at(v, prefix))
		})
	})
	t.Run("ogw", func(t *testing.T) {
		s := testenv.NewServer(t, ogw, testenv.ServerOptions{})
		s.AWS("s3", "mb", "s3://store")
		clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs {
			return openS3(t, s3.Options{Endpoint: "http://" + s.S3, Bucket: "store", Prefix: newPrefix(), AccessKey: s.KeyID, SecretKey: s.Secret})
		})
	})
}

// blob stores n bytes that only id has.
func blob(b cluster.Blobs, id cluster.BlobID, n int) error {
	return storeBlob(b, id, blobBytes(id, n))
}

func storeBlob(b cluster.Blobs, id cluster.BlobID, data []byte) error {
	w, err := b.Create(context.Background(), id, int64(len(data)))
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, _, err = w.Commit(context.Background())
	return err
}

func blobBytes(id cluster.BlobID, n int) []byte {
	return bytes.Repeat(id.Append(nil), n/cluster.BlobIDBytes)
}

// wantBlob reads a blob of n bytes whole.
func wantBlob(t *testing.T, b cluster.Blobs, id cluster.BlobID, n int) {
	t.Helper()
	got := make([]byte, n)
	if _, err := b.ReadAt(context.Background(), id, got, 0); err != nil || !bytes.Equal(got, blobBytes(id, n)) {
		t.Errorf("blob %v: %v, or other bytes", id, err)
	}
}

// Blobs whose file was changed, cut at any place, or changed for that of another
// blob are corrupt, never other bytes.
func TestS3Damage(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	b := openS3(t, at(v, ""))
	const frame, size = cluster.BlockBytes + 8, 4 * cluster.BlockBytes
	file := func(id cluster.BlobID) string {
		return filepath.Join(v.Dir, "store", "ogw", "blob", id.String())
	}
	other := cluster.BlobID{Content: 2}
	if err := blob(b, other, size); err != nil {
		t.Fatal(err)
	}
	for i, damage := range []func(data []byte) []byte{
		func(data []byte) []byte { data[3*frame+5] ^= 1; return data },
		func(data []byte) []byte { data[frame-1] ^= 1; return data },
		func(data []byte) []byte { return data[:0] },
		func(data []byte) []byte { return data[:3] },
		func(data []byte) []byte { return data[:3*frame] },
		func(data []byte) []byte { return data[:2*frame+9] },
		func(data []byte) []byte { return append(data, 0) },
		func(data []byte) []byte { copy(data, data[frame:2*frame]); return data },
		func([]byte) []byte { data, _ := os.ReadFile(file(other)); return data },
	} {
		id := cluster.BlobID{Content: 1, Seq: uint64(i)}
		if err := blob(b, id, size); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file(id))
		if err == nil {
			err = os.WriteFile(file(id), damage(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := b.ReadAt(context.Background(), id, make([]byte, size), 0); n != 0 || !errors.Is(err, cluster.ErrCorrupt) {
			t.Errorf("damage %d: %d bytes, %v", i, n, err)
		}
		if err := cluster.VerifyBlob(context.Background(), b, id); !errors.Is(err, cluster.ErrCorrupt) {
			t.Errorf("damage %d: VerifyBlob: %v", i, err)
		}
	}
	wantBlob(t, b, other, size)
}

// writeBlobs has workers store blobs until stop, and returns what was
// acknowledged, and how many ended otherwise.
func writeBlobs(t *testing.T, b cluster.Blobs, size func(i int) int, disturb func()) (acked map[cluster.BlobID]int, unknown int64) {
	t.Helper()
	var mu sync.Mutex
	var failed atomic.Int64
	var wg sync.WaitGroup
	acked, stop := map[cluster.BlobID]int{}, make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := cluster.BlobID{Content: uint64(w), Seq: uint64(i)}
				err := blob(b, id, size(i))
				switch {
				case err == nil:
					mu.Lock()
					acked[id] = size(i)
					mu.Unlock()
				case errors.Is(err, cluster.ErrUnavailable):
					failed.Add(1)
				default:
					t.Errorf("blob %v: %v", id, err)
				}
			}
		})
	}
	disturb()
	close(stop)
	wg.Wait()
	if len(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
	t.Logf("%d blobs acknowledged, %d unavailable", len(acked), failed.Load())
	return acked, failed.Load()
}

// Answers that get lost leave no blob that its writer was told not to have made
// for the reason that it exists.
func TestS3LostAnswers(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	p := newLossyProxy(t, v.Addr())
	p.rate = 0.1 // connections are many, and a blob of parts is megabytes
	o := at(v, "")
	o.Endpoint = "http://" + p.addr()
	b := openS3(t, o)
	p.losing.Store(true)
	acked, _ := writeBlobs(t, b, func(i int) int {
		if i%4 == 0 {
			return 9 << 20 // of parts
		}
		return 64 << 10
	}, func() { waitFor(t, func() bool { return p.lost.Load() >= 20 }) })
	p.losing.Store(false)
	for id, n := range acked {
		wantBlob(t, b, id, n)
	}
}

// waitFor waits for a state that the load brings about.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Error("the state was not reached")
			return
		}
	}
}

// A server that is away is an error of readers in bounded time, and no damage; writers wait for
// it.
func TestS3Kill(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	b := openS3(t, at(v, ""))
	var small atomic.Int64
	acked, unavailable := writeBlobs(t, b, func(i int) int { small.Add(1); return 64 << 10 }, func() {
		for range 3 {
			seen := small.Load()
			waitFor(t, func() bool { return small.Load() > seen+50 })
			v.Kill()
			begin := time.Now()
			if _, err := b.ReadAt(context.Background(), cluster.BlobID{}, make([]byte, 1), 0); !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > 30*time.Second {
				t.Errorf("read without a server: %v after %v", err, time.Since(begin))
			}
			v.Start()
		}
	})
	if unavailable > 0 {
		t.Errorf("%d writers noticed that the server was away for a moment", unavailable)
	}
	for id, n := range acked {
		wantBlob(t, b, id, n)
	}
}

// A server that stands still keeps its connections: a caller who gives up is let
// go, and the next ones are served once it moves.
func TestS3Silent(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	b := openS3(t, at(v, ""))
	id, big := cluster.BlobID{Content: 1}, cluster.BlobID{Content: 2}
	if err := blob(b, id, 1<<20); err != nil {
		t.Fatal(err)
	}
	w, err := b.Create(context.Background(), big, -1)
	if err == nil {
		_, err = w.Write(blobBytes(big, 20<<20)) // a part is under way, and another one waits
	}
	if err != nil {
		t.Fatal(err)
	}
	v.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if n, err := b.ReadAt(ctx, id, make([]byte, 1<<20), 0); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read of an impatient caller: %d, %v", n, err)
	}
	if _, _, err := w.Commit(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit of an impatient caller: %v", err)
	}
	v.Signal(syscall.SIGCONT)
	wantBlob(t, b, id, 1<<20)
	if err := blob(b, cluster.BlobID{Content: 3}, 20<<20); err != nil {
		t.Error(err)
	}
}

// Parts of a process that ended are dropped once they are old, not before, and
// those of a writer that gives up at once.
func TestS3Abort(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	b := openS3(t, at(v, ""))
	w, err := b.Create(context.Background(), cluster.BlobID{Content: 1}, -1)
	if err == nil {
		_, err = w.Write(make([]byte, 20<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	uploads := func() (n int) {
		filepath.WalkDir(filepath.Join(v.Dir, "store", ".sgwtmp", "multipart"), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
		return n
	}
	if uploads() == 0 {
		t.Fatal("no part was stored")
	}
	openS3(t, at(v, ""))
	if uploads() == 0 {
		t.Error("the parts of a live writer were dropped by another process")
	}
	w.Abort()
	if err := b.Close(); err != nil { // waits for what was begun
		t.Fatal(err)
	}
	if n := uploads(); n > 0 {
		t.Errorf("%d parts of an aborted blob are left", n)
	}
}

func TestS3BadOptions(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	nobody := "http://" + testenv.FreeAddr(t)
	for name, test := range map[string]struct {
		change func(o *s3.Options)
		want   error
		says   string
	}{
		"no URL":       {func(o *s3.Options) { o.Endpoint = v.Addr() }, cluster.ErrInvalid, "not a URL"},
		"no bucket":    {func(o *s3.Options) { o.Bucket = "" }, cluster.ErrInvalid, "no bucket"},
		"half a key":   {func(o *s3.Options) { o.SecretKey = "" }, cluster.ErrInvalid, "secret key"},
		"long prefix":  {func(o *s3.Options) { o.Prefix = strings.Repeat("p", 600) }, cluster.ErrInvalid, "prefix of 600 bytes"},
		"nobody there": {func(o *s3.Options) { o.Endpoint = nobody }, cluster.ErrUnavailable, "connection refused"},
		"other bucket": {func(o *s3.Options) { o.Bucket = "other" }, cluster.ErrUnavailable, "NoSuchBucket"},
		"unknown key":  {func(o *s3.Options) { o.AccessKey = "nobody" }, cluster.ErrUnavailable, "access key"},
		"wrong secret": {func(o *s3.Options) { o.SecretKey = "wrong" }, cluster.ErrUnavailable, "SignatureDoesNotMatch"},
	} {
		o := at(v, "")
		test.change(&o)
		_, err := s3.Open(context.Background(), o)
		if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bucket that was deleted is not one without blobs.
func TestS3BucketGone(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	b := openS3(t, at(v, ""))
	id := cluster.BlobID{Content: 1}
	if err := os.RemoveAll(filepath.Join(v.Dir, "store")); err != nil {
		t.Fatal(err)
	}
	_, read := b.ReadAt(context.Background(), id, make([]byte, 1), 0)
	_, locate := b.Locate(context.Background(), id)
	list := b.List(context.Background(), cluster.BlobID{}, func(cluster.BlobInfo) error { return nil })
	for name, err := range map[string]error{"ReadAt": read, "Locate": locate, "List": list, "Commit": blob(b, id, 16)} {
		if !errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
