package engines

import (
	"context"
	"io"
	"testing"

	"github.com/minio/minio-go/v7"
)

// What was read once is read without the servers of the blobs, after a start, too, until it is
// purged.
func TestGatewayReadCache(t *testing.T) {
	t.Parallel()
	x := startShared(t, startEtcdMeta)
	x.conf += "read_cache = \"64MiB\"\n"
	a := x.gateway(nil)
	c := s3Client(t, a)
	if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put(c, "big", big); err != nil {
		t.Fatal(err)
	}
	wantObject(t, c, "big", big)
	x.s3.Kill()
	wantObject(t, c, "big", big)
	x.s3.Start()
	a.Stop()
	a.Start()
	x.s3.Kill()
	wantObject(t, c, "big", big)
	a.OGW("purge", "bkt/big")
	o, err := c.GetObject(context.Background(), "bkt", "big", minio.GetObjectOptions{})
	if err == nil {
		_, err = io.Copy(io.Discard, o)
	}
	if err == nil {
		t.Error("what was purged is read without its server")
	}
	x.s3.Start()
	wantObject(t, c, "big", big)
}
