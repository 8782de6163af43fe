package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// TestManyGateways runs gateways beside one another over one store.
func TestManyGateways(t *testing.T) { onStores(t, testManyGateways) }

func testManyGateways(t *testing.T, x *shared) {
	x.manyGateways()
	a, b := x.prepare(nil), x.prepare(nil)
	a.Launch() // both make the store
	b.Launch()
	a.Await()
	b.Await()
	if (a.KeyID == "") == (b.KeyID == "") {
		t.Fatalf("root's keys: %q at one, %q at the other gateway", a.KeyID, b.KeyID)
	}
	if a.KeyID == "" {
		a.KeyID, a.Secret = b.KeyID, b.Secret
	}
	b.KeyID, b.Secret = a.KeyID, a.Secret
	ca, cb := s3Client(t, a), s3Client(t, b)
	if err := ca.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("tells", func(t *testing.T) {
		if status := a.With(t).OGW("status"); strings.Count(status, ", alive") != 2 {
			t.Errorf("status:\n%s", status)
		}
		alone := strings.ReplaceAll(x.conf, `"many"`, `"one"`)
		if out := refused(t, alone); !strings.Contains(out, "uses it beside others") {
			t.Errorf("a gateway that wants it alone:\n%s", out)
		}
		if out := refused(t, x.conf, "mount", "--writeback", testenv.TempDir(t)); !strings.Contains(out, "cluster.gateways") {
			t.Errorf("a mount:\n%s", out)
		}
	})
	t.Run("purge", func(t *testing.T) { purged(t, a, b) })
	t.Run("visible", func(t *testing.T) { visible(t, ca, cb) })
	t.Run("conditions", func(t *testing.T) { onlyOne(t, ca, cb) })
	t.Run("files", func(t *testing.T) { files(t, a, b, ca, cb) })
	t.Run("writers", func(t *testing.T) { writers(t, a, b, ca) })
	t.Run("listings", func(t *testing.T) { listings(t, a, b, ca, cb) })
	t.Run("download", func(t *testing.T) { x.download(t, ca, cb) })
	t.Run("open", func(t *testing.T) { x.removedOpen(t, a, b, ca) })
	if err := errors.Join(put(ca, "big", big), put(cb, "small", small)); err != nil {
		t.Fatal(err)
	}
	// They come back together, and none takes the other for gone.
	x.away(t, a, ca, x.meta.kill, x.meta.start)
	x.away(t, b, cb, func() { x.meta.signal(syscall.SIGSTOP); time.Sleep(15 * time.Second) }, func() { x.meta.signal(syscall.SIGCONT) })
	waitFor(t, func() bool { return ready(t, a) && ready(t, b) })
	wantObject(t, cb, "big", big)
	wantObject(t, ca, "small", small)
	x.putOut(t, a, b)
	b.Start()
	cb = s3Client(t, b)
	x.killed(t, a, b)
	b.Start()
	wantObject(t, s3Client(t, b), "big", big)
	if out := a.OGW("check"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
		t.Errorf("check:\n%s", out)
	}
}

// purged asks each gateway for a purge, which both do.
func purged(t *testing.T, a, b *testenv.Server) {
	c := s3Client(t, a)
	if err := put(c, "purged", small); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*testenv.Server{a, b} {
		begin := time.Now()
		out := s.With(t).OGW("purge", "bkt/purged")
		t.Logf("a purge took %v", time.Since(begin).Round(100*time.Millisecond))
		if strings.Count(out, "dropped from the caches (1 inode)") != 2 || strings.Count(out, "host ") != 1 {
			t.Errorf("purge:\n%s", out)
		}
	}
}

// TestLeaderWithoutBlobs cuts the oldest gateway off from S3: another one removes for all.
func TestLeaderWithoutBlobs(t *testing.T) { onMetadata(t, testLeaderWithoutBlobs) }

func testLeaderWithoutBlobs(t *testing.T, x *shared) {
	x.manyGateways()
	way := newRelay(t, x.s3.Addr())
	mine := *x
	mine.conf = strings.Replace(x.conf, x.s3.Addr(), way.addr(), 1)
	a := mine.gateway(nil)
	b := x.gateway(a)
	c := s3Client(t, b)
	if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, cut := range [][2]bool{{true, true}, {false, true}, {true, false}} {
		if err := put(c, "big", big); err != nil {
			t.Fatal(err)
		}
		way.cut(cut[0], cut[1])
		if err := c.RemoveObject(context.Background(), "bkt", "big", minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		waitFor(t, func() bool { return len(x.blobNames(t)) == 0 })
		t.Logf("cut off from S3 (requests, answers: %v), another one removed after %v", cut, time.Since(begin).Round(100*time.Millisecond))
		way.cut(false, false)
		waitFor(t, func() bool { return ready(t, a) })
	}
	if out := a.OGW("check", "--data"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
		t.Errorf("check:\n%s", out)
	}
}

// visible writes through each and reads through the other one at once.
func visible(t *testing.T, ca, cb *minio.Client) {
	for i := range 100 {
		text := fmt.Appendf(nil, "%d", i)
		from, to := ca, cb
		if i%2 == 1 {
			from, to = cb, ca
		}
		if err := put(from, "turn", text); err != nil {
			t.Fatal(err)
		}
		wantObject(t, to, "turn", text)
		if err := from.RemoveObject(context.Background(), "bkt", "turn", minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := to.StatObject(context.Background(), "bkt", "turn", minio.StatObjectOptions{}); minio.ToErrorResponse(err).Code != "NoSuchKey" {
			t.Fatalf("what was removed: %v", err)
		}
	}
}

// onlyOne has each name made by one of those that want it made by them.
func onlyOne(t *testing.T, ca, cb *minio.Client) {
	const names, rivals = 50, 4
	var made [names]atomic.Int32
	var wg sync.WaitGroup
	for k := range rivals {
		c := []*minio.Client{ca, cb}[k%2]
		wg.Go(func() {
			for i := range names {
				o := minio.PutObjectOptions{DisableMultipart: true}
				o.SetMatchETagExcept("*")
				_, err := c.PutObject(context.Background(), "bkt", fmt.Sprint("name", i), strings.NewReader("x"), 1, o)
				switch code := minio.ToErrorResponse(err).Code; {
				case err == nil:
					made[i].Add(1)
				case code != "PreconditionFailed" && code != "ConditionalRequestConflict":
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range made {
		if n := made[i].Load(); n != 1 {
			t.Errorf("name %d was made %d times", i, n)
		}
	}
}

// download removes, through one gateway, what is being read through the other one.
func (x *shared) download(t *testing.T, ca, cb *minio.Client) {
	if err := errors.Join(put(ca, "read", big), put(ca, "other", big[:1<<20])); err != nil {
		t.Fatal(err)
	}
	o, err := cb.GetObject(context.Background(), "bkt", "read", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	first := make([]byte, 1<<20)
	if _, err := io.ReadFull(o, first); err != nil {
		t.Fatal(err)
	}
	before := len(x.blobNames(t))
	for _, key := range []string{"read", "other"} {
		if err := ca.RemoveObject(context.Background(), "bkt", key, minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return len(x.blobNames(t)) < before }) // the collector has been there
	rest, err := io.ReadAll(o)
	if err != nil || string(first)+string(rest) != string(big) {
		t.Errorf("%d bytes were read of what was removed, %v", len(first)+len(rest), err)
	}
	o.Close()
	waitFor(t, func() bool { return len(x.blobNames(t)) == 0 })
}

// putOut has b stand still until a put it out, and go on: nothing that it does counts, and
// it ends.
func (x *shared) putOut(t *testing.T, a, b *testenv.Server) {
	process := b.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	out, err := a.TryOGW("purge", "bkt/small")
	if silent := err != nil && strings.Contains(out, "NO ANSWER") && strings.Contains(out, "1 of 1 other gateways"); !silent && !strings.Contains(a.Log(), "is put out") {
		t.Errorf("a purge while one stands still: %v\n%s", err, out)
	}
	waitFor(t, func() bool { return strings.Contains(a.Log(), "is put out") })
	t.Logf("a gateway that stood still was put out after %v", time.Since(begin).Round(100*time.Millisecond))
	if err := put(s3Client(t, a), "of a", small); err != nil {
		t.Error(err)
	}
	late := make(chan error, 1)
	go func() { late <- put(s3Client(t, b), "of a", []byte("late")) }()
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err == nil {
		t.Error("a write was acknowledged by a gateway that was put out")
	}
	select {
	case <-process.Done():
	case <-time.After(time.Minute):
		t.Fatal("a gateway that was put out goes on")
	}
	b.Process = nil
	wantObject(t, s3Client(t, a), "of a", small)
}

// killed ends b while it stores an object: the other one goes on, and removes what was not
// named.
func (x *shared) killed(t *testing.T, a, b *testenv.Server) {
	before := x.blobNames(t)
	body, more := io.Pipe()
	go func() {
		_, err := s3Client(t, b).PutObject(context.Background(), "bkt", "half", body, 400<<20, minio.PutObjectOptions{DisableMultipart: true})
		if err == nil {
			t.Error("half an object was acknowledged")
		}
		body.Close()
	}()
	for n := len(big); !hasNew(x.blobNames(t), before); n += len(big) {
		if _, err := more.Write(big); err != nil || n > 300<<20 {
			t.Fatalf("nothing of it is stored: %v", err)
		}
	}
	b.Kill()
	more.Close()
	if err := put(s3Client(t, a), "meanwhile", small); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return strings.Count(a.OGW("status"), "used by") == 1 })
	waitFor(t, func() bool { return !hasNew(x.blobNames(t), before) })
}

// hasNew reports whether there are names that were not there before.
func hasNew(names, before map[string]bool) bool {
	for name := range names {
		if !before[name] {
			return true
		}
	}
	return false
}
