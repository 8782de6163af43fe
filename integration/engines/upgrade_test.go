package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// TestUpgrade replaces two gateways by those of this tree, one after the other, under load
// through both and with a program on a mount that survives: so for a time two versions are
// beside one another (make test-upgrade).
func TestUpgrade(t *testing.T) {
	older := os.Getenv("OGW_TEST_OLDER")
	if older == "" {
		t.Skip("needs a program of before: make test-upgrade BASE=COMMIT (OGW_TEST_OLDER)")
	}
	onMetadata(t, func(t *testing.T, x *shared) { testUpgrade(t, x, older) })
}

// upgraded are the gateways of TestUpgrade, and who writes through them.
type upgraded struct {
	t       *testing.T
	servers [2]*testenv.Server
	clients [2]*minio.Client
	away    [2]atomic.Bool
	done    atomic.Int64 // acknowledged writes
}

func testUpgrade(t *testing.T, x *shared, older string) {
	needMounts(t)
	x.manyGateways()
	u := &upgraded{t: t}
	var dirs [2]string
	for i := range u.servers {
		s := x.prepare(u.servers[0])
		s.Binary = older
		s.Start()
		u.servers[i], u.clients[i] = s, s3Client(t, s)
		if i == 0 {
			if err := u.clients[0].MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		dirs[i] = filepath.Join(s.Mount("-o", "survive"), "bkt")
	}
	if err := os.WriteFile(filepath.Join(dirs[1], "held"), []byte("of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	held := hold(t, filepath.Join(dirs[1], "held"), ":")
	stop, writers := make(chan struct{}), sync.WaitGroup{}
	for w := range 4 {
		writers.Go(func() { u.write(w, stop) })
	}
	u.passes(200)
	for i := len(u.servers) - 1; i >= 0; i-- {
		u.away[i].Store(true)
		u.servers[i].Stop()
		u.servers[i].Binary = ogw
		u.servers[i].Start()
		u.away[i].Store(false)
		u.passes(400) // two versions beside one another, or the new one alone
		u.shares(i == 1)
		mountsSee(t, &mounted{u.servers[0], dirs[0], u.clients[0]}, &mounted{u.servers[1], dirs[1], u.clients[1]})
		if err := errors.Join(os.Remove(filepath.Join(dirs[0], "log"))); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writers.Wait()
	if got, err := held.read(); err != nil || got != "of before" {
		t.Errorf("what was open over the upgrade holds %q, %v", got, err)
	}
	if out, err := u.servers[0].TryOGW("check", "--data"); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// shares has a client reserve a file: while one is there that does not know this, the new gateway
// has the client ask again.
func (u *upgraded) shares(mixed bool) {
	u.t.Helper()
	x := newSharer(u.t, u.servers[1], "127.0.0.5", "bkt/held")
	if before := x.reserve(u.servers[0], nlmShare, shareReads, 0, false); mixed && before != nlmGranted {
		x.shares("beside one of before", u.servers[1], shareReads, 0, nlmGrace)
		return
	}
	for _, s := range u.servers {
		if got := x.settled(s, shareReads, shareWrites); got != nlmGranted {
			u.t.Errorf("SHARE: status %d", got)
		}
	}
	x.unshares(u.servers[0])
}

// passes waits until that many more writes were acknowledged.
func (u *upgraded) passes(n int64) {
	u.t.Helper()
	for begin, end := time.Now(), u.done.Load()+n; u.done.Load() < end; time.Sleep(50 * time.Millisecond) {
		if u.t.Failed() || time.Since(begin) > 2*time.Minute {
			u.t.Fatalf("%d writes were acknowledged, %d are missing", u.done.Load(), end-u.done.Load())
		}
	}
}

// write puts objects, small and large, at one gateway, and reads them at the other one.
func (u *upgraded) write(w int, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		at, from := (w+i)%2, (w+i+1)%2
		if u.away[at].Load() {
			at = from
		}
		key, body := fmt.Sprintf("w%d-%d", w, i%20), fmt.Appendf(nil, "%d of %d %s", i, w, big[:i%4*20_000])
		err := put(u.clients[at], key, body)
		if err != nil {
			if u.away[at].Load() { // it was being stopped
				continue
			}
			u.t.Errorf("PUT: %v", err)
			return
		}
		u.done.Add(1)
		if u.away[from].Load() {
			continue
		}
		op := register{kind: "get", key: key}
		got, err := op.do(context.Background(), u.clients[from])
		if err != nil && u.away[from].Load() {
			continue
		}
		if err != nil || !bytes.Equal([]byte(got.value), body) {
			u.t.Errorf("%s: %d bytes of %d, %v", key, len(got.value), len(body), err)
			return
		}
	}
}
