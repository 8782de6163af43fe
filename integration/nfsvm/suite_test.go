package nfsvm

import (
	"strings"
	"testing"
	"time"

	"ogw/integration/testenv"
)

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
	{"atime", "the client answers from its pages and keeps attributes; the server is tested without the kernel"},
	{"chattr", "no procedure tells of file flags; they hold all the same, which is tested without the kernel"},
	{"kept", "no procedure tells the server what a client still refers to"},
	{"dirlinks", "directories have one link through every door"},
}

// unlikePOSIX are checks that cannot hold on any NFSv3 mount.
var unlikePOSIX = []struct{ failure, reason string }{
	{`/times/nanoseconds: utimensat\([a-z ]+, .*\{(-\d+|0|4294967[3-9]\d\d|85899\d{5}) \d+\}.* gives `,
		"times are unsigned 32 bits, and the client's kernel drops the nanoseconds in the first second"},
	{`/attributes/utimensat: set \{(-86400 5|4294967296 999999999)\}, got `, "the same"},
	{`/modes/a_descriptor_keeps_its_rights: (read|write|ftruncate) after chmod 0: permission denied`,
		"the server knows no open files: rights are checked with every call"},
	{`/statx/birth: a file has no time of birth`, "no attribute of version 3 tells it"},
	{`/open/unlinked_but_open: nlink 1, size 15`, "the client renames a file that is removed while it is open"},
}

// TestKernelClientSuite runs the suite of package posix on a mount of the
// kernel's client.
func TestKernelClientSuite(t *testing.T) {
	s := start(t)
	binary := testenv.TestBinary(t, "ogw/integration/posix")
	var without, expected []string
	for _, f := range notOfNFS {
		without = append(without, f.feature)
	}
	for _, c := range unlikePOSIX {
		expected = append(expected, c.failure)
	}
	s.boot("suite", Guest{MemoryMiB: 1024, Timeout: suiteTimeout + 5*time.Minute,
		Files: map[string]string{"bin/posix.test": binary},
		Env: []string{"WITHOUT=" + strings.Join(without, ","), "EXPECTED=" + strings.Join(expected, "\n"),
			"LIMIT=" + suiteTimeout.String()}})
}
