package integration

import (
	"io"
	"path"
	"testing"

	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
)

// nfsTarget mounts an export with an NFS client in Go, which can remove, as
// libnfs's command line tools cannot.
func (s *server) nfsTarget(t *testing.T, export string) *nfs.Target {
	t.Helper()
	client, err := rpc.DialTCP("tcp", s.nfs, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	m := nfs.Mount{Client: client}
	target, err := m.Mount(export, rpc.NewAuthUnix("test", 0, 0).Auth())
	if err != nil {
		t.Fatalf("mount %s: %v", export, err)
	}
	return target
}

// readAndRemoveOverNFS reads all files of a bucket, compares them with bodies
// and removes everything, deepest first.
func readAndRemoveOverNFS(t *testing.T, s *server, bucket string, bodies map[string]string) {
	t.Helper()
	target := s.nfsTarget(t, "/"+bucket)
	var got []string
	var remove func(dir string)
	remove = func(dir string) {
		entries, err := target.ReadDirPlus(dir)
		if err != nil {
			t.Fatalf("readdirplus %q: %v", dir, err)
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				remove(name)
				// An implied directory vanished with its last entry; a file
				// that it shadowed may have its name now.
				if a, _, err := target.Lookup(name); err == nil && a.IsDir() {
					if err := target.RmDir(name); err != nil {
						t.Errorf("rmdir %q: %v", name, err)
					}
				}
				continue
			}
			f, err := target.Open(name)
			if err != nil {
				t.Errorf("open %q: %v", name, err)
				continue
			}
			b, err := io.ReadAll(f)
			if err != nil {
				t.Errorf("read %q: %v", name, err)
			}
			f.Close()
			got = append(got, string(b))
			if err := target.Remove(name); err != nil {
				t.Errorf("remove %q: %v", name, err)
			}
		}
	}
	remove("/")
	wantBodies(t, got, bodies)
}

// truncateTo is a SETATTR that changes the size only.
func truncateTo(size uint64) nfs.Sattr3 {
	return nfs.Sattr3{Size: nfs.SetSize{SetIt: true, Size: size}}
}
