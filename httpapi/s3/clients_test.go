package s3

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	mcreds "github.com/minio/minio-go/v7/pkg/credentials"

	"ogw/httpapi/sigv4"
)

func pathEnv() string { return os.Getenv("PATH") }

// minioClient is minio-go, which signs chunks over plain HTTP.
type minioClient struct {
	plain, trailing *minio.Client
}

func (d *door) minio(user string) minioClient {
	d.t.Helper()
	u, _ := url.Parse(d.url)
	make := func(trailing bool) *minio.Client {
		c, err := minio.New(u.Host, &minio.Options{Creds: mcreds.NewStaticV4("KEY"+user, secretOf(user), ""), Region: "us-east-1", TrailingHeaders: trailing})
		if err != nil {
			d.t.Fatal(err)
		}
		return c
	}
	return minioClient{make(false), make(true)}
}

func (m minioClient) putStream(bucket, key string, body []byte, trailer bool) error {
	c, o := m.plain, minio.PutObjectOptions{}
	if trailer {
		c, o.Checksum = m.trailing, minio.ChecksumCRC32C
	}
	_, err := c.PutObject(context.Background(), bucket, key, bytes.NewReader(body), int64(len(body)), o)
	return err
}

// tree makes files to be synchronized: empty, small, large, odd names.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string][]byte{
		"empty": nil, "small.txt": []byte("small"), "dir/large.bin": randomBytes(20<<20, 4), "dir/sub/ünï cödé+plus&amp.txt": []byte("odd"), "dir.txt": []byte("beside"),
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tool runs a client program; the test is skipped where it is not installed.
func tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("client programs take their time")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s command", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func sameTree(t *testing.T, a, b string) {
	t.Helper()
	if out, err := exec.Command("diff", "-r", a, b).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// readPolicy lets everybody read a bucket's objects.
func readPolicy(bucket string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + bucket + `/*"}]}`
}

func TestAwsCli(t *testing.T) {
	d := openDoor(t, Config{})
	dir, back := tree(t), t.TempDir()
	aws := func(args ...string) string {
		t.Helper()
		return tool(t, awsEnv("alice"), "aws", append([]string{"--endpoint-url", d.url}, args...)...)
	}
	aws("s3", "mb", "s3://cli")
	aws("s3", "sync", dir, "s3://cli/up")
	if again := aws("s3", "sync", dir, "s3://cli/up"); strings.Contains(again, "upload") {
		t.Errorf("a second sync uploads: %s", again)
	}
	aws("s3", "sync", "s3://cli/up", back)
	sameTree(t, dir, back)
	if ls := aws("s3", "ls", "s3://cli/up/"); !strings.Contains(ls, "PRE dir/") || !strings.Contains(ls, "dir.txt") {
		t.Errorf("%s", ls)
	}
	aws("s3", "mv", "s3://cli/up/dir/large.bin", "s3://cli/moved")
	aws("s3", "cp", "s3://cli/moved", filepath.Join(back, "moved"))
	aws("s3api", "put-object-acl", "--bucket", "cli", "--key", "moved", "--acl", "public-read")
	aws("s3api", "get-bucket-acl", "--bucket", "cli")
	aws("s3api", "head-object", "--bucket", "cli", "--key", "moved", "--checksum-mode", "ENABLED")
	aws("s3api", "put-bucket-policy", "--bucket", "cli", "--policy", readPolicy("cli"))
	if got := aws("s3api", "get-bucket-policy", "--bucket", "cli", "--query", "Policy", "--output", "text"); strings.TrimSpace(got) != readPolicy("cli") {
		t.Errorf("policy: %s", got)
	}
	if got := aws("s3api", "get-bucket-policy-status", "--bucket", "cli"); !strings.Contains(got, `"IsPublic": true`) {
		t.Errorf("status: %s", got)
	}
	aws("s3api", "delete-bucket-policy", "--bucket", "cli")
	aws("s3", "rm", "--recursive", "s3://cli/")
	aws("s3", "rb", "s3://cli")
}

func TestS3cmd(t *testing.T) {
	d := openDoor(t, Config{})
	dir, back := tree(t), t.TempDir()
	u, _ := url.Parse(d.url)
	conf := filepath.Join(t.TempDir(), "s3cfg")
	text := "[default]\naccess_key = KEYalice\nsecret_key = " + secretOf("alice") + "\nhost_base = " + u.Host + "\nhost_bucket = " + u.Host +
		"\nuse_https = False\nbucket_location = us-east-1\nmultipart_chunk_size_mb = 5\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s3cmd := func(args ...string) string {
		t.Helper()
		return tool(t, []string{"PATH=" + pathEnv(), "HOME=" + filepath.Dir(conf), "LC_ALL=C.UTF-8"}, "s3cmd", append([]string{"-c", conf, "--no-progress"}, args...)...)
	}
	s3cmd("mb", "s3://cmd")
	s3cmd("sync", dir+"/", "s3://cmd/up/")
	s3cmd("sync", "s3://cmd/up/", back+"/")
	sameTree(t, dir, back)
	s3cmd("setacl", "--acl-public", "s3://cmd/up/small.txt")
	d.wantRaw("", "GET", "/cmd/up/small.txt", nil, nil, 200, "small")
	s3cmd("cp", "s3://cmd/up/small.txt", "s3://cmd/copy")
	if info := s3cmd("info", "s3://cmd/copy"); !strings.Contains(info, "File size: 5") {
		t.Errorf("%s", info)
	}
	s3cmd("info", "s3://cmd")
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(readPolicy("cmd")), 0o600); err != nil {
		t.Fatal(err)
	}
	s3cmd("setpolicy", file, "s3://cmd")
	d.wantRaw("", "GET", "/cmd/up/dir.txt", nil, nil, 200, "")
	if info := s3cmd("info", "s3://cmd"); !strings.Contains(info, "arn:aws:s3:::cmd/*") {
		t.Errorf("%s", info)
	}
	s3cmd("delpolicy", "s3://cmd")
	d.wantRaw("", "GET", "/cmd/up/dir.txt", nil, nil, 403, "")
	s3cmd("del", "--recursive", "--force", "s3://cmd/")
	s3cmd("rb", "s3://cmd")
}

func TestRclone(t *testing.T) {
	d := openDoor(t, Config{})
	dir, back := tree(t), t.TempDir()
	env := []string{"PATH=" + pathEnv(), "HOME=" + t.TempDir(), "RCLONE_CONFIG_O_TYPE=s3", "RCLONE_CONFIG_O_PROVIDER=Other", "RCLONE_CONFIG_O_ENDPOINT=" + d.url,
		"RCLONE_CONFIG_O_ACCESS_KEY_ID=KEYalice", "RCLONE_CONFIG_O_SECRET_ACCESS_KEY=" + secretOf("alice"), "RCLONE_CONFIG_O_REGION=us-east-1"}
	rclone := func(args ...string) string {
		t.Helper()
		return tool(t, env, "rclone", append(args, "--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M")...)
	}
	rclone("mkdir", "o:clone")
	rclone("sync", dir, "o:clone/up")
	rclone("check", dir, "o:clone/up")
	rclone("sync", "o:clone/up", back)
	sameTree(t, dir, back)
	rclone("moveto", "o:clone/up/dir/large.bin", "o:clone/moved")
	rclone("purge", "o:clone")
}

func TestBoto3(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import boto3").Run() != nil {
		t.Skip("no boto3")
	}
	d := openDoor(t, Config{V2: sigv4.V2All})
	tool(t, []string{"PATH=" + pathEnv(), "HOME=/nonexistent"}, "python3", "testdata/boto.py", d.url, d.tls, "KEYalice", secretOf("alice"))
}

// The JavaScript SDK, where OGW_NODE_MODULES names a folder that holds it in
// node_modules (make deps).
func TestJavaScript(t *testing.T) {
	modules := os.Getenv("OGW_NODE_MODULES")
	if modules == "" {
		t.Skip("OGW_NODE_MODULES is not set")
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules")); err != nil {
		t.Skip(err)
	}
	d := openDoor(t, Config{})
	tool(t, []string{"PATH=" + pathEnv(), "HOME=/nonexistent", "OGW_NODE_MODULES=" + modules}, "node", "testdata/sdk.mjs", d.url, "KEYalice", secretOf("alice"))
}
