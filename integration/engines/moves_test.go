package engines

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// TestGatewayMoves brings a store from one machine's engine to shared ones, by a backup, and,
// while two gateways use it, by another one to an empty shared store and back to one machine.
func TestGatewayMoves(t *testing.T) { onMetadata(t, testGatewayMoves) }

// movedObjects are small and large, some of which stand for what is not in the metadata;
// they have more records than etcd takes in one transaction.
const movedObjects = 60

func movedBody(i int) []byte {
	return []byte(strings.Repeat(fmt.Sprint("object ", i, ";"), []int{1, 1000, 100_000}[i%3]))
}

func testGatewayMoves(t *testing.T, x *shared) {
	one := testenv.NewServer(t, ogw, testenv.ServerOptions{})
	c := s3Client(t, one)
	if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range movedObjects {
		if err := put(c, fmt.Sprint("dir/", i), movedBody(i)); err != nil {
			t.Fatal(err)
		}
	}
	key := make([]byte, 32)
	_, err := rand.Read(key)
	keyFile, folder := filepath.Join(testenv.TempDir(t), "backup.key"), filepath.Join(testenv.TempDir(t), "backup")
	if err = errors.Join(err, os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	source := []string{folder, "--key-file", keyFile}
	one.OGW(append([]string{"backup"}, source...)...)
	one.Stop()

	x.manyGateways()
	a := x.prepare(nil)
	a.OGW(append([]string{"restore"}, source...)...)
	b := x.prepare(nil)
	for _, s := range []*testenv.Server{a, b} {
		s.Start()
		s.KeyID, s.Secret = one.KeyID, one.Secret // a store keeps its keys
	}
	ca, cb := s3Client(t, a), s3Client(t, b)
	moved(t, cb)

	// A step of a writer changes two objects, one after the other: the second is never newer.
	stop, stopped := make(chan struct{}), sync.WaitGroup{}
	for w, c := range []*minio.Client{ca, cb} {
		stopped.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for _, name := range []string{"first", "second"} {
					if err := put(c, fmt.Sprint(name, w), fmt.Appendf(nil, "%09d %s", i, big[:i%5*20_000])); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	var ids []string
	for i := range 3 {
		var b struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(a.OGW(append([]string{"backup", "--json"}, source...)...)), &b); err != nil || b.ID == "" {
			t.Fatalf("backup %d: %v", i, err)
		}
		ids = append(ids, b.ID)
	}
	close(stop)
	stopped.Wait()
	a.Stop()
	b.Stop()

	other := startShared(t, x.meta.another)
	for i, to := range []*testenv.Server{other.prepare(nil), testenv.PrepareServer(t, ogw, testenv.ServerOptions{})} {
		to.OGW("restore", folder, ids[i], "--key-file", keyFile)
		if out := to.OGW("check", "--data"); !strings.Contains(out, "clean") {
			t.Errorf("check: %s", out)
		}
		to.Start()
		to.KeyID, to.Secret = one.KeyID, one.Secret
		c := s3Client(t, to)
		moved(t, c)
		for w := range 2 {
			first, second := stepOf(t, c, fmt.Sprint("first", w)), stepOf(t, c, fmt.Sprint("second", w))
			if first != second && first != second+1 {
				t.Errorf("writer %d is restored at steps %d and %d", w, first, second)
			}
		}
		to.Stop()
	}
}

// moved compares what was there from the first.
func moved(t *testing.T, c *minio.Client) {
	t.Helper()
	for i := range movedObjects {
		wantObject(t, c, fmt.Sprint("dir/", i), movedBody(i))
	}
}

// stepOf returns the step whose object this is, -1 if there is none.
func stepOf(t *testing.T, c *minio.Client, name string) (step int) {
	t.Helper()
	op := register{kind: "get", key: name}
	out, err := op.do(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.value == "" {
		return -1
	}
	if _, err := fmt.Sscanf(out.value, "%09d", &step); err != nil {
		t.Error(err)
	}
	return step
}
