package engines

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// posixLimit is far above what the suite takes.
const posixLimit = 30 * time.Minute

// TestManyGatewaysPOSIX runs the suite of package posix on a mount of one of two gateways. It
// takes a quarter of an hour, which make test does not have.
func TestManyGatewaysPOSIX(t *testing.T) {
	if startPool == nil {
		t.Skip("make test-cluster runs it")
	}
	onStores(t, testManyGatewaysPOSIX)
}

func testManyGatewaysPOSIX(t *testing.T, x *shared) {
	needMounts(t)
	binary := testenv.TestBinary(t, "ogw/integration/posix")
	x.manyGateways()
	a := x.gateway(nil)
	x.gateway(a)
	if err := s3Client(t, a).MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("/var/tmp", "ogw-posix-*") // where others may go
	if err == nil {
		err = os.Chmod(top, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(top) })
	a.OGW("mount", "-o", "allow_other", top)
	t.Cleanup(func() { a.With(t).OGW("umount", top) })
	ctx, cancel := context.WithTimeout(context.Background(), posixLimit)
	defer cancel()
	suite := exec.CommandContext(ctx, binary, "-test.run=^TestDirectory$", "-test.v", "-test.timeout="+posixLimit.String())
	suite.Env = append(os.Environ(), "OGW_POSIX_DIR="+filepath.Join(top, "bkt"), "OGW_POSIX_OTHER=/dev/shm", "OGW_POSIX_WITHOUT=devices,dirlinks")
	suite.WaitDelay = 10 * time.Second
	out, err := suite.CombinedOutput()
	if err == nil {
		return
	}
	t.Errorf("the suite: %v", err)
	for line := range bytes.Lines(out) {
		if s := string(line); !strings.Contains(s, "--- PASS") && !strings.Contains(s, "=== ") {
			t.Log(strings.TrimRight(s, "\n"))
		}
	}
}
