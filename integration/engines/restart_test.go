package engines

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/integration/testenv"
)

// TestRestart kills a gateway and starts the next one of its data folder, which knows that the one
// before has ended.
func TestRestart(t *testing.T) { onMetadata(t, testRestart) }

func testRestart(t *testing.T, x *shared) {
	alone := x.gateway(nil)
	var fs unix.Statfs_t
	if err := unix.Statfs(alone.Data, &fs); err != nil || fs.Type == unix.OVERLAYFS_SUPER_MAGIC || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("on this file system a lock does not tell who has ended (%x, %v)", fs.Type, err)
	}
	if err := s3Client(t, alone).MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	alone.Kill()
	took := alone.Start()
	t.Logf("a gateway that has the store alone: the next one serves after %v", took)
	if took > 2*cluster.PeerWait { // it would be 10 s
		t.Errorf("the next one of a store that one gateway uses took %v", took)
	}
	alone.Stop()

	x.manyGateways()
	a := x.gateway(alone)
	b := x.gateway(alone)
	ca := s3Client(t, a)
	fastest := time.Hour // of a busy machine
	for range 3 {
		waitFor(t, func() bool { return told(a) && told(b) })
		fastest = min(fastest, x.restart(t, a, b, ca))
	}
	if fastest >= cluster.PeerWait {
		t.Errorf("the next one serves after %v", fastest)
	}
	x.crashLoop(t, b)
	waitFor(t, func() bool { return told(a) && told(b) })
	x.copied(t, b, ca)
}

// restart kills b, and returns when the next one acknowledges.
func (x *shared) restart(t *testing.T, a, b *testenv.Server, ca *minio.Client) (took time.Duration) {
	t.Helper()
	if err := put(s3Client(t, b), "before", small); err != nil {
		t.Fatal(err)
	}
	b.Kill()
	begin := time.Now()
	other := make(chan time.Duration, 1)
	go func() {
		if err := put(ca, "beside", small); err != nil {
			t.Error(err)
		}
		other <- time.Since(begin)
	}()
	b.Start()
	if err := put(s3Client(t, b), "after", small); err != nil {
		t.Error(err)
	}
	took = time.Since(begin)
	wantObject(t, ca, "after", small)
	waitFor(t, func() bool { return told(a) && told(b) })
	t.Logf("after kill -9: a PUT at the next one %v, at the other one %v, both told again %v",
		took.Round(10*time.Millisecond), (<-other).Round(10*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
	if !strings.Contains(b.Log(), "is put out: it has ended") {
		t.Errorf("log:\n%s", b.Log())
	}
	return took
}

// crashLoop kills b again and again before the others miss any.
func (x *shared) crashLoop(t *testing.T, b *testenv.Server) {
	t.Helper()
	b.Kill()
	b.Start()
	fastest := time.Hour // of a busy machine
	for range 3 {
		b.Kill()
		fastest = min(fastest, b.Start())
	}
	t.Logf("after crashes in a row, the fastest start took %v", fastest.Round(10*time.Millisecond))
	if fastest > cluster.PeerWait {
		t.Errorf("each start after a crash took %v and more", fastest)
	}
}

// copied starts a gateway in a copy of the folder of b, which is alive and silent: it waits.
func (x *shared) copied(t *testing.T, b *testenv.Server, ca *minio.Client) {
	t.Helper()
	c := x.prepare(nil)
	copyFolder(t, b.Data, c.Data)
	cb := s3Client(t, b)
	wantObject(t, cb, "after", small)
	if err := b.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	took := c.Start()
	t.Logf("in a copy of the folder of one that is alive: %v", took)
	if took < cluster.PeerWait*9/10 {
		t.Errorf("it did not wait for the one that it is a copy of: %v", took)
	}
	if err := put(s3Client(t, c), "after", []byte("new")); err != nil {
		t.Error(err)
	}
	if err := b.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // it refuses everything if that took longer than its right lasts
		got, err := getObject(cb, "after")
		if err == nil && string(got) != "new" {
			t.Fatalf("the one that was copied answers %q", got)
		} else if err != nil && !unavailable(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	wantObject(t, ca, "after", []byte("new"))
	c.Stop()
	if err := put(cb, "after", small); err != nil {
		t.Errorf("the one that was copied: %v", err)
	}
}
