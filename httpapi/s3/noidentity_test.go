package s3

import (
	"errors"
	"strings"
	"testing"

	"ogw/vfs"
)

// TestRequestWithoutIdentity: what nobody authenticated asks as nobody, also where
// it would own what it makes.
func TestRequestWithoutIdentity(t *testing.T) {
	d := openDoor(t, Config{})
	if _, err := d.fs.CreateBucket(bg, "private", vfs.Root); err != nil {
		t.Fatal(err)
	}
	q := request{Server: d.srv, asks: vfs.SubjectContext{Context: bg}}
	_, err := d.fs.PutObject(&q.asks, vfs.ObjectName{Bucket: "private", Key: "key"}, strings.NewReader("x"), vfs.PutOptions{Size: 1, Owner: q.id.cred()})
	if !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("writes: %v", err)
	}
	if c := q.id.cred(); c.UID() != vfs.NobodyUID || c.GID() != vfs.NobodyUID {
		t.Errorf("owner %d:%d", c.UID(), c.GID())
	}
}
