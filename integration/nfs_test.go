package integration

import (
	"io"
	"path"
	"testing"
)

// readAndRemoveOverNFS reads all files of a bucket, compares them with bodies
// and removes everything, deepest first.
func readAndRemoveOverNFS(t *testing.T, s *server, bucket string, bodies map[string]string) {
	t.Helper()
	target := s.nfsDoor(t, "/"+bucket)
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
				if err := target.RmDir(name); err != nil {
					t.Errorf("rmdir %q: %v", name, err)
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
