//go:build ceph

package engines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// startPool is the place of blobs in a Ceph cluster.
var startPool = poolBlobs

// poolBlobs are a pool of its own, in the cluster that others use, too.
func poolBlobs(t *testing.T) *blobServer {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	return &blobServer{
		lines: fmt.Sprintf("objects = \"rados://admin@%s\"\nobjects_conf = %q\n", pool, c.Conf()),
		place: "rados://admin@" + pool,
		where: []string{"rados://" + pool + "/ogw/blob/", "osd.0 on ", "osd.1 on ", "osd.2 on ", "127.0.0.11:", "CRUSH root=default host=node1", ") primary", "(PG "},
		names: func(t *testing.T) map[string]bool {
			names := map[string]bool{}
			for _, name := range c.With(t).Objects(pool, "ogw") {
				if id, ok := strings.CutPrefix(name, "blob/"); ok {
					names[id] = true
				}
			}
			return names
		},
		empty: func(t *testing.T) {
			for _, name := range c.With(t).Objects(pool, "ogw") {
				if out, err := exec.Command("rados", "-c", c.Conf(), "-p", pool, "-N", "ogw", "rm", name).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		},
	}
}

// A gateway whose OSDs die but one refuses what needs blobs, is not ready, and goes on when
// they are back. It runs alone: the OSDs are those of other tests.
func TestGatewayWithoutOSDs(t *testing.T) {
	c := testenv.StartCeph(t)
	x := startStore(t, startEtcdMeta, poolBlobs(t))
	a := x.gateway(nil)
	client := s3Client(t, a)
	if err := client.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put(client, "big", big); err != nil {
		t.Fatal(err)
	}
	x.away(t, a, client, func() { c.Kill("osd.1", "osd.2") }, func() {
		c.Start("osd.1", "osd.2")
		c.AwaitUp(testenv.CephOSDs)
	})
}

// TestNemesisRADOS is TestNemesis over a Ceph cluster, whose OSDs are killed and stopped. It runs
// alone: the OSDs are those of other tests.
func TestNemesisRADOS(t *testing.T) {
	c, blobs := testenv.StartCeph(t), poolBlobs(t)
	victim := ""
	choose := func() { victim = fmt.Sprint("osd.", rand.IntN(testenv.CephOSDs)) }
	blobs.victim.kill = func() {
		choose()
		c.Kill(victim)
	}
	blobs.victim.start = func() { c.Start(victim) }
	blobs.victim.signal = func(s syscall.Signal) {
		if s == syscall.SIGSTOP {
			choose()
		}
		c.Signal(victim, s)
	}
	defer c.AwaitUp(testenv.CephOSDs)
	testNemesis(t, startStore(t, startEtcdCluster, blobs))
}
