package nfsvm

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed guest/suite.sh
var guestSuite string

// suiteTimeout bounds the suite in the guest, whose processor is emulated.
const suiteTimeout = 40 * time.Minute

// notOfNFS is what NFS version 3 cannot say, or what the kernel's client does
// not do for it (see package posix for the features).
var notOfNFS = []struct{ feature, reason string }{
	{"acl", "ACLs are the side protocol NFSACL, which is not served"},
	{"xattr", "RFC 8276 brought extended attributes to version 4.2"},
	{"xattrbig", "the same"},
	{"security", "the same: there are no file capabilities"},
	{"own", "the reserved names of extended attributes; the others are tested without the kernel"},
	{"tmpfile", "no procedure makes a file without a name"},
	{"fallocate", "no procedure allocates or punches holes"},
	{"zerorange", "the same"},
	{"holes", "no procedure tells of holes"},
	{"renameflags", "RENAME has no flags"},
	{"dirlinks", "directories have one link through every door"},
}

// unlikePOSIX are cases that cannot hold on any NFSv3 mount.
var unlikePOSIX = []struct{ test, reason string }{}

// TestKernelClientSuite runs the suite of package posix on a mount of the
// kernel's client.
func TestKernelClientSuite(t *testing.T) {
	s := start(t)
	binary := filepath.Join(t.TempDir(), "posix.test")
	cmd := exec.Command("go", "test", "-c", "-o", binary, "../posix")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the suite: %v\n%s", err, out)
	}
	var without, skip []string
	for _, f := range notOfNFS {
		without = append(without, f.feature)
	}
	for _, c := range unlikePOSIX {
		skip = append(skip, c.test)
	}
	s.boot(guestSuite, Guest{MemoryMiB: 1024, Timeout: suiteTimeout + 5*time.Minute,
		Files: map[string]string{"bin/posix.test": binary},
		Env: []string{"WITHOUT=" + strings.Join(without, ","), "SKIP=" + strings.Join(skip, "|"),
			"LIMIT=" + suiteTimeout.String()}})
}
