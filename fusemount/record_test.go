package fusemount

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Refusals and changes of buckets and ACLs are reported, with who and what.
func TestRecords(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		var mu sync.Mutex
		var list []string
		dir, _ := mountFS(t, openFS(t), Options{Transport: over, Done: func(r *Record) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, fmt.Sprintf("%s %d/%s %d/%s %s uid=%d %v rights=%v", r.Operation, r.Ino, r.Name, r.ToDir, r.ToName,
				r.Detail, r.UID, r.Errno, r.Rights))
			if r.PID == 0 || r.Dir == "" {
				t.Errorf("%+v", r)
			}
		}})
		must(t, os.Mkdir(dir+"/photos", 0o755))
		must(t, os.Chmod(dir+"/photos", 0o750))
		write(t, dir+"/photos/f", "text")
		must(t, os.Chmod(dir+"/photos/f", 0o640))
		// user::rw-, user:1000:r--, group::r--, mask::r--, other::---
		acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 232, 3, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255,
			16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
		must(t, unix.Setxattr(dir+"/photos/f", "system.posix_acl_access", acl, 0))
		must(t, os.Rename(dir+"/photos", dir+"/pictures"))
		if err := unix.Setxattr(dir+"/pictures/f", "trusted.x", nil, unix.XATTR_CREATE|unix.XATTR_REPLACE); err == nil {
			t.Error("an impossible attribute is set")
		}
		must(t, os.Remove(dir+"/pictures/f"))
		must(t, os.Remove(dir+"/pictures"))
		want := []string{
			"mkdir 1/photos 0/  uid=0 errno 0 rights=true",
			"setattr 2/ 0/  uid=0 errno 0 rights=true",
			"setxattr 3/ 0/ system.posix_acl_access uid=0 errno 0 rights=true",
			"rename 1/photos 1/pictures  uid=0 errno 0 rights=true",
			"rmdir 1/pictures 0/  uid=0 errno 0 rights=true",
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(list, want) {
			t.Errorf("told:\n%s\nwant:\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
		}
		for e, refused := range map[syscall.Errno]bool{syscall.EACCES: true, syscall.EPERM: true, syscall.EROFS: true, syscall.ENOENT: false, 0: false} {
			if (&Record{Errno: e}).Refused() != refused {
				t.Errorf("%v: refused is not %v", e, refused)
			}
		}
	})
}
