package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// domain is the service domain under which programs find buckets by name.
const domain = "s3.test"

// manyKeys is more than a page of a list has.
const manyKeys = 1100

// programs are what people put on top of S3: scripts in testdata/programs that store a
// tree, fetch it, compare, and do what else the program is for. They set endpoint, keys
// and region, and the style of addresses where the program does not choose it itself.
var programs = []struct {
	name string
	way  way // the only one, unless OGW_TEST_PROGRAMS is all
	// needs is a variable that names what the program needs; "" for none.
	needs string
}{
	{"aws", httpsHost, ""},
	{"boto3", httpsHost, ""},
	{"duplicity", httpsPath, ""},
	{"javascript", httpHost, "OGW_NODE_MODULES"},
	{"mc", httpPath, "OGW_MC"},
	{"rclone", httpsHost, ""},
	{"restic", httpPath, ""},
	{"s3cmd", httpsHost, ""},
	{"s3fs", httpHost, ""},
}

// way is how a program comes to a bucket.
type way struct{ scheme, style string }

var (
	httpPath  = way{"http", "path"}
	httpsPath = way{"https", "path"}
	httpHost  = way{"http", "host"}
	httpsHost = way{"https", "host"}

	allWays = []way{httpPath, httpsPath, httpHost, httpsHost}
)

// wantPrograms skips tests that take minutes, and programs that few machines have.
func wantPrograms(t *testing.T) {
	t.Helper()
	if os.Getenv("OGW_TEST_PROGRAMS") == "" {
		t.Skip("OGW_TEST_PROGRAMS is not set: make test-programs")
	}
}

// TestPrograms runs each program in one way, or in all with OGW_TEST_PROGRAMS=all.
func TestPrograms(t *testing.T) {
	wantPrograms(t)
	p := newSite(t)
	for _, program := range programs {
		ways := []way{program.way}
		if os.Getenv("OGW_TEST_PROGRAMS") == "all" {
			ways = allWays
		}
		for _, w := range ways {
			t.Run(strings.Join([]string{program.name, w.scheme, w.style}, " "), func(t *testing.T) {
				if program.needs != "" && os.Getenv(program.needs) == "" {
					t.Skip(program.needs + " is not set")
				}
				if w.style == "host" && os.Geteuid() != 0 {
					t.Skip("names of buckets are resolved in a mount namespace, which needs root")
				}
				t.Parallel()
				p.run(t, program.name, w)
			})
		}
	}
}

// site is a server whose S3 door has a domain, and answers over TLS too.
type site struct {
	*server
	secure string // host:port
	cert   string
	hosts  string // file
	tree   string // what programs store
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := testenv.TempDir(t)
	cert, key, _ := testenv.Certificate(t, dir, domain)
	p := &site{secure: testenv.FreeAddr(t), cert: cert, hosts: filepath.Join(dir, "hosts"), tree: mixedTree(t)}
	domains := fmt.Sprintf("domains = [%q]\n", domain)
	p.server = newServer(t, options{S3: domains, Extra: fmt.Sprintf(
		"[[gateway]]\nprotocol = \"s3\"\nname = \"secure\"\nlisten = %q\ntls_cert = %q\ntls_key = %q\n%s", p.secure, cert, key, domains)})
	t.Cleanup(func() { checkClean(t, p.server) }) // before it is stopped
	names := "127.0.0.1 localhost " + domain + " many." + domain
	for _, program := range programs {
		for _, w := range []way{httpHost, httpsHost} {
			names += " " + w.bucket(program.name) + "." + domain
		}
	}
	if err := os.WriteFile(p.hosts, []byte(names+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	many := testenv.TempDir(t)
	for i := range manyKeys {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("key-%04d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.OGW("bucket", "add", "many")
	p.Command("cp", "-r", many+"/.", p.Mount("-o", "subtree=/many"))
	return p
}

// bucket is the one that a program makes.
func (w way) bucket(program string) string { return program + "-" + w.scheme + "-" + w.style }

// address is the endpoint, and where the objects of a bucket are.
func (p *site) address(w way, bucket string) (endpoint, objects string) {
	addr := p.S3
	if w.scheme == "https" {
		addr = p.secure
	}
	if w.style == "path" {
		endpoint = w.scheme + "://" + addr
		return endpoint, endpoint + "/" + bucket
	}
	addr = domain + addr[strings.LastIndexByte(addr, ':'):]
	return w.scheme + "://" + addr, w.scheme + "://" + bucket + "." + addr
}

// bare runs a script with nothing of the user's configuration.
const bare = `set -euo pipefail
fetch() { curl -sSf --cacert "$CERT" "$@"; }
. "$HERE/$PROGRAM.sh"`

// run runs a program's script.
func (p *site) run(t *testing.T, program string, w way) {
	bucket := w.bucket(program)
	url, objects := p.address(w, bucket)
	here, err := filepath.Abs("testdata/programs")
	if err != nil {
		t.Fatal(err)
	}
	work := testenv.TempDir(t)
	// By itself botocore puts the bucket in the path of any endpoint but Amazon's.
	config := filepath.Join(work, "aws")
	style := map[string]string{"path": "auto", "host": "virtual"}[w.style]
	if err := os.WriteFile(config, []byte("[default]\ns3 =\n  addressing_style = "+style+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "LC_ALL=C.UTF-8",
		"PROGRAM=" + program, "HERE=" + here, "WORK=" + work, "TREE=" + p.tree,
		"URL=" + url, "STYLE=" + w.style, "BUCKET=" + bucket, "OBJECTS=" + objects,
		"LOOKUP=" + map[string]string{"path": "path", "host": "dns"}[w.style],
		"MANY=many", "MANY_KEYS=" + strconv.Itoa(manyKeys), "CERT=" + p.cert,
		"READABLE=" + `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + bucket + `/*"}]}`,
		"AWS_ACCESS_KEY_ID=" + p.KeyID, "AWS_SECRET_ACCESS_KEY=" + p.Secret, "AWS_DEFAULT_REGION=us-east-1", "AWS_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "PYTHONDONTWRITEBYTECODE=1", "AWS_PAGER=", "AWS_CONFIG_FILE=" + config, "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_CA_BUNDLE=" + p.cert, "SSL_CERT_FILE=" + p.cert, "CURL_CA_BUNDLE=" + p.cert, "REQUESTS_CA_BUNDLE=" + p.cert, "NODE_EXTRA_CA_CERTS=" + p.cert}
	for _, name := range []string{"OGW_RCLONE", "OGW_MC", "OGW_NODE_MODULES", "PYENV_VERSION"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	command := []string{"bash", "-xc", bare}
	if w.style == "host" {
		command = []string{"unshare", "-m", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, p.hosts, "bash", "-xc", bare}
	}
	out, err := testenv.Output("", env, command[0], command[1:]...)
	if err != nil {
		t.Fatalf("%v\n%s\nserver log:\n%s", err, out, p.Log())
	}
}
