//go:build !ceph

package engines

import (
	"strings"
	"testing"
)

// startPool is the place of blobs in a Ceph cluster, which is not built in.
var startPool func(t *testing.T) *blobServer

// A program that was built without Ceph says so.
func TestWithoutCeph(t *testing.T) {
	m := startEtcdMeta(t)
	if out := refused(t, "metadata = \""+m.url+"\"\nobjects = \"rados://pool\"\n"); !strings.Contains(out, "built without Ceph") || !strings.Contains(out, "make build-ceph") {
		t.Errorf("it says:\n%s", out)
	}
}
