package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// mixedTree is what clients stumble over: an empty file, one that becomes a
// multipart upload, nested and oddly named ones.
func mixedTree(t *testing.T) string {
	t.Helper()
	dir := testenv.TempDir(t)
	for name, size := range map[string]int{
		"empty": 0, "one": 1, "sub/dir/4k": 4096, "sub/100k": 100_000, "big": 20 << 20,
		"sp ace/plus+and%percent": 10, "ünïcödé/naïve": 10,
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestClients sends a tree in and fetches it back with each S3 client.
func TestClients(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	src := mixedTree(t)
	t.Run("clients", func(t *testing.T) { // returns when all did
		t.Run("aws", func(t *testing.T) {
			t.Parallel()
			s := s.with(t)
			s.AWS("s3", "mb", "s3://by-aws")
			s.AWS("s3", "sync", "--only-show-errors", src, "s3://by-aws/tree") // a reused connection after an empty upload must not break
			s.AWS("s3", "rm", "--recursive", "--only-show-errors", "s3://by-aws/tree")
			s.AWS("s3", "sync", "--only-show-errors", src, "s3://by-aws/tree")
			back := testenv.TempDir(t)
			s.AWS("s3", "sync", "--only-show-errors", "s3://by-aws/tree", back)
			s.Command("diff", "-r", src, back)
			s.AWS("s3", "mv", "--only-show-errors", "s3://by-aws/tree/big", "s3://by-aws/moved")
			s.AWS("s3", "rb", "--force", "s3://by-aws")
		})
		t.Run("s3cmd", func(t *testing.T) {
			t.Parallel()
			s := s.with(t)
			cfg := filepath.Join(testenv.TempDir(t), "s3cfg")
			text := fmt.Sprintf("[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = False\n",
				s.KeyID, s.Secret, s.S3, s.S3)
			if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s3cmd := func(args ...string) string {
				return s.Command("s3cmd", append([]string{"-c", cfg, "--no-progress"}, args...)...)
			}
			s3cmd("mb", "s3://by-s3cmd")
			s3cmd("sync", src+"/", "s3://by-s3cmd/tree/")
			back := testenv.TempDir(t)
			s3cmd("sync", "s3://by-s3cmd/tree/", back+"/")
			s.Command("diff", "-r", src, back)
			if out := s3cmd("ls", "s3://by-s3cmd/tree/"); !strings.Contains(out, "DIR") || !strings.Contains(out, "big") {
				t.Errorf("s3cmd ls:\n%s", out)
			}
			s3cmd("setacl", "--acl-public", "s3://by-s3cmd")
			s3cmd("del", "--recursive", "--force", "s3://by-s3cmd")
			s3cmd("rb", "s3://by-s3cmd")
		})
		t.Run("rclone", func(t *testing.T) {
			t.Parallel()
			s := s.with(t)
			remote := fmt.Sprintf(":s3,provider=Other,access_key_id=%s,secret_access_key=%s,endpoint='http://%s':",
				s.KeyID, s.Secret, s.S3)
			rclone := func(args ...string) string {
				return s.Command("rclone", append([]string{"--config", "/dev/null"}, args...)...)
			}
			rclone("mkdir", remote+"by-rclone")
			rclone("copy", "--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M", src, remote+"by-rclone/tree")
			rclone("check", "--download", src, remote+"by-rclone/tree")
			if out := rclone("copy", "-v", src, remote+"by-rclone/tree"); strings.Contains(out, "Copied") {
				t.Errorf("a second copy transferred something: modification times were lost\n%s", out)
			}
			rclone("purge", remote+"by-rclone")
		})
	})
	checkClean(t, s)
}
