package engines

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// etcdCalls is how many reads and transactions a member was asked for.
func etcdCalls(t *testing.T, addr string) (n float64) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "grpc_server_started_total{") && (strings.Contains(name, `grpc_method="Range"`) || strings.Contains(name, `grpc_method="Txn"`)) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += v
		}
	}
	return n
}

// TestGatewayCosts counts what the server of the metadata is asked for by each
// operation: a round trip each. What runs in the background is taken off.
func TestGatewayCosts(t *testing.T) {
	x := startShared(t)
	c := s3Client(t, x.gateway(nil))
	ctx := context.Background()
	if err := c.MakeBucket(ctx, "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	calls := func() float64 { return etcdCalls(t, x.etcd.Endpoints()[0]) }
	const idle = 6 * time.Second // three beats, and each of the background's turns
	before := calls()
	time.Sleep(idle)
	rate := (calls() - before) / idle.Seconds()
	t.Logf("in the background %.1f calls a second", rate)
	read := func(i int) error {
		o, err := c.GetObject(ctx, "bkt", fmt.Sprint("small", i), minio.GetObjectOptions{})
		if err == nil {
			_, err = io.Copy(io.Discard, o)
		}
		return err
	}
	for _, test := range []struct {
		name string
		run  func(i int) error
		most float64
	}{
		{"PUT of 5 bytes", func(i int) error { return put(c, fmt.Sprint("small", i), small) }, 10},
		{"PUT of 1 MiB", func(i int) error { return put(c, fmt.Sprint("big", i), big[:1<<20]) }, 10},
		{"GET of 5 bytes", read, 10},
		{"HEAD", func(i int) error {
			_, err := c.StatObject(ctx, "bkt", fmt.Sprint("small", i), minio.StatObjectOptions{})
			return err
		}, 9},
	} {
		const n = 40
		begin, before := time.Now(), calls()
		for i := range n {
			if err := test.run(i); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
		}
		took := time.Since(begin)
		each := (calls() - before - rate*took.Seconds()) / n
		t.Logf("%s: %.1f round trips, %v", test.name, each, (took / n).Round(100*time.Microsecond))
		if each > test.most+0.5 {
			t.Errorf("%s: %.1f round trips, at most %.0f are known", test.name, each, test.most)
		}
	}
}
