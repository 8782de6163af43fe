package engines

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// outage is how long clients read while a server is away: its connections end, then new ones
// are refused.
const outage = 2 * time.Second

// TestOutage: while the metadata or the blobs are away, whoever reads gets the bytes or an
// error, through every door, and nothing counts as damaged afterwards.
func TestOutage(t *testing.T) {
	onMetadata(t, func(t *testing.T, x *shared) {
		x.manyGateways()
		x.conf += "cache = \"1MiB\"\n" // less than what is read
		a := x.gateway(nil)
		x.gateway(a)
		c := s3Client(t, a)
		if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{"none": {}, "small": small, "blob": big[:100<<10], "large": big[:8<<20]}
		for name, data := range files {
			if err := put(c, name, data); err != nil {
				t.Fatal(err)
			}
		}
		doors := map[string]func(name string) ([]byte, error){
			"S3":  func(name string) ([]byte, error) { return getObject(c, name) },
			"NFS": func(name string) ([]byte, error) { return nfsRead(a, name) },
		}
		mount := ""
		if os.Geteuid() == 0 {
			mount = a.Mount()
			doors["FUSE"] = func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(mount, "bkt", name)) }
		}
		all := func() (read, failed int) {
			for door, get := range doors {
				for name, want := range files {
					switch got, err := get(name); {
					case err != nil:
						failed++
					case !bytes.Equal(got, want):
						t.Errorf("%s: %s: %d bytes without an error, of %d", door, name, len(got), len(want))
					default:
						read++
					}
				}
			}
			return read, failed
		}
		waitFor(t, func() bool { return told(a) })
		for away, v := range map[string]victim{"metadata": {x.meta.kill, x.meta.start, x.meta.signal}, "blobs": x.blobs.victim} {
			if _, failed := all(); failed > 0 {
				t.Fatalf("%d reads fail", failed)
			}
			// Files that are known, and were not read.
			for i := range 4 {
				name := fmt.Sprint(away, i)
				if files[name] = small; i%2 > 0 {
					files[name] = big[:100<<10]
				}
				if err := put(c, name, files[name]); err != nil {
					t.Fatal(err)
				}
				if mount != "" {
					_, err := os.Stat(filepath.Join(mount, "bkt", name))
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			v.kill()
			read, failed := 0, 0
			for begin := time.Now(); time.Since(begin) < outage && !t.Failed(); {
				r, f := all()
				read, failed = read+r, failed+f
			}
			v.start()
			t.Logf("without the %s: %d reads, %d failed", away, read, failed)
			if failed == 0 {
				t.Errorf("the %s were not away", away)
			}
			waitFor(t, func() bool { _, failed := all(); return failed == 0 })
		}
		if out, err := a.TryOGW("check", "--data"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func getObject(c *minio.Client, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	o, err := c.GetObject(ctx, "bkt", key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(o)
}

// nfsRead reads a file of the bucket by a connection of its own.
func nfsRead(s *testenv.Server, name string) (data []byte, err error) {
	c, err := nfsclient.Dial("", s.NFS)
	if err != nil {
		return nil, err
	}
	defer c.Net.Close()
	c.Timeout = opTimeout
	bucket, err := topHandle(c, "bkt")
	if err != nil {
		return nil, err
	}
	st, fh, err := c.Lookup(bucket, name)
	if err := statusErr(st, err); err != nil {
		return nil, err
	}
	for {
		st, b, err := c.Read(fh, uint64(len(data)), 1<<20)
		if err := statusErr(st, err); err != nil || len(b) == 0 {
			return data, err
		}
		data = append(data, b...)
	}
}
