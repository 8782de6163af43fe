package nfsserver

import (
	"context"
	"errors"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs"
)

// TestCallWithoutCred: a call that no export gave a credential to has the rights of
// nobody, not those of the superuser.
func TestCallWithoutCred(t *testing.T) {
	s := openSite(t, mem.NewDisk(), Export{Path: "/", Squash: SquashNone})
	ctx := context.Background()
	_, f, _, err := s.fs.Create(ctx, vfs.Root, vfs.RootIno, "private", vfs.CreateOptions{Mode: 0o600, Flags: vfs.OpenWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(ctx) //nolint:errcheck // nothing was written
	var q request
	if err := s.fs.Access(ctx, &q.cred, f.Ino(), vfs.AccessRead); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("reads: %v", err)
	}
	if err := s.fs.Unlink(ctx, &q.cred, vfs.RootIno, "private"); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("deletes: %v", err)
	}
}
