package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// What clients configure, and how they read it back, through the server.
func TestS3Configuration(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	dir := testenv.TempDir(t)
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	s.makeBucket("conf")
	s.AWS("s3api", "put-object", "--bucket", "conf", "--key", "k", "--body", file("body", "text"), "--acl", "public-read")

	rules := `{"CORSRules": [{"AllowedOrigins": ["https://app.example"], "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["*"], "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 60}]}`
	s.AWS("s3api", "put-bucket-cors", "--bucket", "conf", "--cors-configuration", rules)
	if out := s.AWS("s3api", "get-bucket-cors", "--bucket", "conf", "--query", "CORSRules[0].[AllowedOrigins[0],AllowedMethods[1],AllowedHeaders[0],ExposeHeaders[0],MaxAgeSeconds]", "--output", "text"); strings.Join(strings.Fields(out), " ") != "https://app.example PUT * ETag 60" {
		t.Errorf("rules: %s", out)
	}
	url := "http://" + s.S3 + "/conf/k"
	preflight := s.Command("curl", "-sS", "-i", "-X", "OPTIONS", "-H", "Origin: https://app.example", "-H", "Access-Control-Request-Method: PUT", "-H", "Access-Control-Request-Headers: x-amz-date", url)
	get := s.Command("curl", "-sS", "-i", "-H", "Origin: https://app.example", url)
	for _, want := range []string{"Access-Control-Allow-Origin: https://app.example", "Access-Control-Allow-Methods: GET, PUT", "Access-Control-Max-Age: 60", "Vary: Origin"} {
		if !strings.Contains(preflight, want) || !strings.Contains(get, want) {
			t.Errorf("no %q in\n%s\n%s", want, preflight, get)
		}
	}
	if out := s.Command("curl", "-sS", "-i", "-H", "Origin: https://evil.example", url); strings.Contains(out, "Access-Control-Allow") {
		t.Errorf("a foreign page may read:\n%s", out)
	}
	s.AWS("s3api", "delete-bucket-cors", "--bucket", "conf")

	if out := s.AWS("s3api", "get-object-attributes", "--bucket", "conf", "--key", "k", "--object-attributes", "ETag", "ObjectSize", "StorageClass", "--query", "[ETag,ObjectSize,StorageClass]", "--output", "text"); strings.Join(strings.Fields(out), " ") != "1cb251ec0d568de6a929b520c4aed8d1 4 STANDARD" {
		t.Errorf("attributes: %s", out)
	}

	id := strings.TrimSpace(s.AWS("s3api", "list-buckets", "--query", "Owner.ID", "--output", "text"))
	s.AWS("s3api", "put-object-acl", "--bucket", "conf", "--key", "k", "--grant-read", "id="+id)
	if out := s.AWS("s3api", "get-object-acl", "--bucket", "conf", "--key", "k", "--query", "Grants[].Permission", "--output", "text"); strings.TrimSpace(out) != "READ" {
		t.Errorf("ACL: %s", out)
	}
}

// A form as boto3 makes it, sent by curl as a browser would.
func TestS3Forms(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	if _, err := s.Try("python3", "-c", "import botocore"); err != nil {
		t.Skip("no botocore for python3")
	}
	s.makeBucket("forms")
	script := `import botocore.session, sys
from botocore.config import Config
for version in ("s3v4", "s3"):
    c = botocore.session.get_session().create_client("s3", endpoint_url=sys.argv[1], config=Config(signature_version=version))
    p = c.generate_presigned_post("forms", version + "/${filename}", Fields={"success_action_status": "201", "Content-Type": "text/plain"},
        Conditions=[["starts-with", "$key", version + "/"], {"success_action_status": "201"}, ["starts-with", "$Content-Type", "text/"], ["content-length-range", 1, 100]])
    print("\t".join([p["url"]] + [k + "=" + v for k, v in p["fields"].items()]))
`
	out := s.Command("python3", "-c", script, "http://"+s.S3)
	file := filepath.Join(testenv.TempDir(t), "f.txt")
	if err := os.WriteFile(file, []byte("from a form"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		form := strings.Split(line, "\t")
		args := []string{"-sS"}
		for _, f := range form[1:] {
			args = append(args, "--form-string", f)
		}
		answer := s.Command("curl", append(args, "-F", "file=@"+file, form[0])...)
		version := "s3v4"
		if strings.Contains(line, "AWSAccessKeyId=") {
			version = "s3"
		}
		if !strings.Contains(answer, "<Key>"+version+"/f.txt</Key>") || !strings.Contains(answer, "<Location>http://"+s.S3+"/forms/"+version+"%2Ff.txt</Location>") {
			t.Errorf("%s: %s", line, answer)
		}
		if got := s.AWS("s3", "cp", "s3://forms/"+version+"/f.txt", "-"); got != "from a form" {
			t.Errorf("%s: %q", version, got)
		}
	}
}
