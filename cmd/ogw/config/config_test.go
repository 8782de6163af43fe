package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, text string, s Sources) (*Config, error) {
	t.Helper()
	if text != "" {
		s.File = filepath.Join(t.TempDir(), "ogw.toml")
		if err := os.WriteFile(s.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(s)
}

func TestErrors(t *testing.T) {
	rest := "[[gateway]]\nprotocol = \"rest\"\n"
	nfs := "[[gateway]]\nprotocol = \"nfs\"\n"
	for _, c := range []struct {
		name, text string
		want       []string // all of them in the message
	}{
		{"syntax", "[cluster]\ndir = \n", []string{"line 2"}},
		{"unknown key", "[cluster]\ndirr = \"x\"\n", []string{"line 2", `"cluster.dirr"`, `did you mean "cluster.dir"`}},
		{"unknown section", "\n[clutser]\ndir = \"x\"\n", []string{"line 2", `"clutser"`, `did you mean "cluster"`}},
		{"key in the wrong section", "[cluster]\nlevel = \"info\"\n", []string{"line 2", `did you mean "log.level"`}},
		{"unknown gateway key", rest + "tokenz = [\"x\"]\n", []string{"line 3", `"gateway.tokenz"`, `did you mean "gateway.tokens"`}},
		{"unknown without a neighbour", "[cluster]\nxyzzyqwert = 1\n", []string{"line 2", `"cluster.xyzzyqwert"`}},
		{"two mistakes", "[cluster]\ndirr = 1\n[log]\nlevl = 1\n", []string{"cluster.dirr", "log.levl"}},
		{"mistakes of every kind", "[cluster]\ndirr = 1\ncache = 1\n[log]\nlevel = \"loud\"\n" + rest + "tokens = [\"x\"]\n" + nfs + "[[gateway.export]]\npath = \"/a\"\n[[gateway.export]]\npath = \"x\"\n",
			[]string{"ogw.toml: line 2: unknown key", "line 3: cluster.cache", "line 5: log.level", "line 8: gateway[0].tokens", "line 14: gateway[1].export[1].path"}},
		{"wrong type and unknown", "[server]\nconnections = \"many\"\n[cluster]\ndirr = 1\n", []string{"line 2", "line 4: unknown key"}},
		{"capitals", "[Log]\nLEVEL = \"loud\"\nLevl = 1\n", []string{"line 2: log.level", `line 3: unknown key "Log.Levl"; did you mean "log.level"`}},
		{"capitals and the wrong type", "[Cluster]\nDir = 1\n[Log]\nLevel = \"info\"\nLevl = 1\n", []string{"line 2", `line 5: unknown key "Log.Levl"`}},
		{"what is not there", "\n" + rest + "tls_cert = \"x\"\n", []string{"line 2: gateway[0].tls_key"}},
		{"one bracket", "[gateway]\nprotocol = \"rest\"\n", []string{"line 1", "[[gateway]]"}},
		{"one bracket within", nfs + "[gateway.export]\npath = \"/\"\n", []string{"line 3", "[[gateway.export]]"}},
		{"wrong type", "[server]\nconnections = \"many\"\n", []string{"line 2", "connections"}},
		{"bad size", "[cluster]\ncache = \"12 parsecs\"\n", []string{"cache", "12 parsecs", "64MiB"}},
		{"negative size", "[cluster]\ncache = -1\n", []string{"cache"}},
		{"small cache", "[cluster]\ncache = \"1KiB\"\n", []string{"cluster.cache", "1KiB"}},
		{"large inline", "[cluster]\ninline = \"1MiB\"\n", []string{"cluster.inline"}},
		{"small dirty", "[cluster]\ndirty = 1\n", []string{"cluster.dirty"}},
		{"bad mode", "[cluster]\nfile_mode = \"rw\"\n", []string{"file_mode", "0644"}},
		{"zero mode", "[cluster]\nfile_mode = \"0000\"\ndir_mode = 0\n", []string{"cluster.file_mode", "cluster.dir_mode"}},
		{"bad duration", "[server]\ndrain = \"soon\"\n", []string{"drain"}},
		{"drain without a unit", "[server]\ndrain = 30\n", []string{"drain", "30 has no unit", "30s"}},
		{"drain of another type", "[server]\ndrain = 30.5\n", []string{"drain", "30.5", "30s"}},
		{"grace without a unit", nfs + "grace = 60\n", []string{"grace", "60 has no unit", "30s"}},
		{"long drain", "[server]\ndrain = \"2h\"\n", []string{"server.drain"}},
		{"no connections", "[server]\nconnections = 0\n", []string{"server.connections"}},
		{"bad level", "[log]\nlevel = \"loud\"\n", []string{"log.level", "loud"}},
		{"bad format", "[log]\nformat = \"xml\"\n", []string{"log.format"}},
		{"bad engine", "[cluster]\nengine = \"tape\"\n", []string{"cluster.engine", "tape"}},
		{"empty folder", "[cluster]\ndir = \"\"\n", []string{"cluster.dir"}},
		{"admin without a token", "[admin]\nlisten = \"127.0.0.1:9090\"\n", []string{"admin.token"}},
		{"admin with a short token", "[admin]\nlisten = \"127.0.0.1:9090\"\ntoken = \"abc\"\n", []string{"admin.token", "16"}},
		{"short token without an address", "[admin]\ntoken = \"0123456789\"\n", []string{"admin.token"}},
		{"bad admin address", "[admin]\nlisten = \"nowhere\"\ntoken = \"0123456789abcdef\"\n", []string{"admin.listen"}},
		{"admin in clear", "[admin]\nlisten = \"0.0.0.0:9090\"\ntoken = \"0123456789abcdef\"\n", []string{"admin.listen", "clear", "tls_cert", "insecure"}},
		{"admin certificate without key", "[admin]\ntls_cert = \"x\"\n", []string{"admin.tls_key"}},
		{"bad pin", "[admin]\npin = \"sha256//x\"\n", []string{"admin.pin", "sha256//"}},
		{"bad syslog", "[audit]\nsyslog = \"http://x\"\nfile = \"x\"\n", []string{"audit.syslog", "udp://", "audit.file"}},
		{"bad rotation", "[audit]\nrotate = 1\nkeep = 0\n", []string{"audit.rotate", "64KiB", "audit.keep"}},
		{"bad protocol", "[[gateway]]\nprotocol = \"ftp\"\n", []string{"gateway[0].protocol", "ftp"}},
		{"no protocol", "[[gateway]]\nlisten = \":1\"\n", []string{"gateway[0].protocol"}},
		{"bad address", rest + "listen = \"127.0.0.1:http:x\"\n", []string{"gateway[0].listen"}},
		{"bad port", rest + "listen = \"127.0.0.1:70000\"\n", []string{"gateway[0].listen", "65535"}},
		{"key of another protocol", rest + "region = \"x\"\n", []string{"gateway[0].region", `"rest"`, "s3"}},
		{"embed listens", "[[gateway]]\nprotocol = \"embed\"\nlisten = \":1\"\n", []string{"gateway[0].listen"}},
		{"certificate without key", rest + "tls_cert = \"x\"\n", []string{"gateway[0].tls_key"}},
		{"key without certificate", rest + "tls_key = \"x\"\n", []string{"gateway[0].tls_cert"}},
		{"no such certificate", rest + "tls_cert = \"/nonexistent\"\ntls_key = \"/nonexistent\"\n", []string{"gateway[0].tls_cert", "nonexistent"}},
		{"open to the world", rest + "listen = \"0.0.0.0:8080\"\n", []string{"gateway[0].listen", "anybody", "tokens"}},
		{"open to the world by a port", rest + "listen = \"8080\"\n", []string{"gateway[0].listen", "anybody"}},
		{"short token", rest + "tokens = [\"x\"]\n", []string{"gateway[0].tokens", "16"}},
		{"no origin", rest + "cors_origins = [\"app.example\"]\n", []string{"gateway[0].cors_origins"}},
		{"any origin and nobody to be", rest + "cors_origins = [\"*\"]\n", []string{"gateway[0].cors_origins"}},
		{"any origin and users", rest + "users = true\ntokens = [\"0123456789abcdef\"]\ncors_origins = [\"*\"]\n", []string{"gateway[0].cors_origins"}},
		{"hosts and tokens", rest + "tokens = [\"0123456789abcdef\"]\nhosts = [\"x\"]\n", []string{"gateway[0].hosts"}},
		{"bad domain", "[[gateway]]\nprotocol = \"s3\"\ndomains = [\"http://x/\"]\n", []string{"gateway[0].domains"}},
		{"negative requests", "[[gateway]]\nprotocol = \"s3\"\nmax_requests = -1\n", []string{"gateway[0].max_requests"}},
		{"export without clients", nfs + "listen = \"0.0.0.0:2049\"\n[[gateway.export]]\npath = \"/x\"\n", []string{"export[0].clients"}},
		{"export with a short secret", nfs + "[[gateway.export]]\npath = \"/x\"\nsecret = \"0123456789abcde\"\n", []string{"export[0].secret", "15", "16"}},
		{"bad portmap and grace", nfs + "portmap = \"maybe\"\ngrace = \"1h\"\n", []string{"gateway[0].portmap", "auto", "gateway[0].grace", "5m"}},
		{"bad export", nfs + "[[gateway.export]]\npath = \"x\"\nclients = [\"all\"]\nsquash = \"some\"\n",
			[]string{"export[0].path", "export[0].clients", "export[0].squash"}},
		{"the same name twice", rest + "name = \"a\"\n[[gateway]]\nprotocol = \"s3\"\nname = \"a\"\n", []string{"gateway[1].name"}},
		{"the same address twice", rest + "listen = \"127.0.0.1:1\"\n[[gateway]]\nprotocol = \"s3\"\nlisten = \"127.0.0.1:1\"\n",
			[]string{"gateway[1].listen", "rest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text, Sources{})
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
	if _, err := load(t, "", Sources{Listen: map[string]string{"rest": "127.0.0.1"}}); err == nil ||
		!strings.Contains(err.Error(), `"127.0.0.1" is not an address such as`) || strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("an address without a port: %v", err)
	}
	if _, err := load(t, rest+"listen = \"127.0.0.1:0\"\n", Sources{Listen: map[string]string{"rest": "x"}}); err == nil || strings.Contains(err.Error(), "line") {
		t.Errorf("the line of what is overridden: %v", err)
	}
	if _, err := Load(Sources{File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that does not exist is accepted")
	}
}

func TestWithoutFile(t *testing.T) {
	c, err := Load(Sources{Environ: []string{"PATH=/bin", "OGW_SERVICE_HOST=10.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Gateways) != 3 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []string{"s3 127.0.0.1:9000", "rest 127.0.0.1:8080", "nfs 127.0.0.1:2049"} {
		if got := c.Gateways[i].Protocol + " " + c.Gateways[i].Listen; got != want || !c.Gateways[i].Moves {
			t.Errorf("gateway %d: %s, want %s; moves: %t", i, got, want, c.Gateways[i].Moves)
		}
	}
	// An address that somebody asked for stays, be it the usual one.
	c, err = Load(Sources{Environ: []string{"OGW_REST_LISTEN=127.0.0.1:1"}, Listen: map[string]string{"s3": "127.0.0.1:9000"}})
	if err != nil || len(c.Gateways) != 3 || c.Gateways[0].Moves || c.Gateways[1].Moves || !c.Gateways[2].Moves {
		t.Errorf("%+v %v", c, err)
	}
	if got := UnknownVariables([]string{"OGW_SERVICE_HOST=x", "OGW_CLUSTER_DIR=x", "OGW_CONFIG=x"}); len(got) != 1 || got[0] != "OGW_SERVICE_HOST" {
		t.Errorf("unknown variables: %v", got)
	}
}

func TestMeantVariable(t *testing.T) {
	for name, want := range map[string]string{
		"OGW_CLUSTER_DRI": "OGW_CLUSTER_DIR", "OGW_CONFG": "OGW_CONFIG", "OGW_SERVICE_HOST": "", "OGW_SERVICE_PORT": "", "OGW_PORT": "", "OGW_PORT_9000_TCP_PORT": "",
	} {
		if got := MeantVariable(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A key may have capitals, as where the library that reads TOML has always taken them.
func TestCapitals(t *testing.T) {
	c, err := load(t, "[Cluster]\nDir = \"/a\"\ncache = \"64MiB\"\n[[Gateway]]\nProtocol = \"nfs\"\n[[Gateway.Export]]\nPATH = \"/x\"\n", Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster.Dir != "/a" || !c.Given("cluster.dir") || !c.Given("cluster.cache") || len(c.Gateways) != 1 || c.Gateways[0].Exports[0].Path != "/x" {
		t.Errorf("%+v", c)
	}
}

// Every file is named so that a process that leaves its working folder finds it
// again; those that are not named stay so.
func TestPathsAreAbsolute(t *testing.T) {
	set := []string{"cluster.dir=d"}
	for _, key := range []string{"audit.file", "cluster.key_file", "admin.ca"} {
		set = append(set, key+"=f")
	}
	c, err := load(t, "[[gateway]]\nprotocol = \"embed\"\n", Sources{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{c.Cluster.Dir, c.Audit.File, c.Cluster.KeyFile, c.Admin.CA}; !slices.Equal(got, []string{abs(t, "d"), abs(t, "f"), abs(t, "f"), abs(t, "f")}) {
		t.Error(got)
	}
	if c.Cluster.MetadataCA != "" || c.Admin.TLSCert != "" || c.AuditFile() != abs(t, "f") {
		t.Errorf("%+v", c)
	}
	_, err = load(t, "[[gateway]]\nprotocol = \"rest\"\ntls_cert = \"c\"\ntls_key = \"k\"\n", Sources{})
	if err == nil || !strings.Contains(err.Error(), abs(t, "c")) {
		t.Errorf("of a gateway: %v", err)
	}
	// A key whose value is a file has the tag.
	for t1 := range fields(reflect.TypeFor[Config]()) {
		if t1.Type.Kind() == reflect.Slice {
			t1.Type = t1.Type.Elem()
		}
		for f := range fields(t1.Type) {
			doc, _, _ := strings.Cut(f.Tag.Get("doc"), "outside")
			if (strings.Contains(doc, "file with") || strings.Contains(doc, "folder;")) && f.Tag.Get("path") == "" {
				t.Errorf("%s.%s", t1.Tag.Get("toml"), f.Tag.Get("toml"))
			}
		}
	}
}

func TestPrecedence(t *testing.T) {
	text := "[cluster]\ndir = \"file\"\ncache = \"2MiB\"\n[log]\nlevel = \"warn\"\n[[gateway]]\nprotocol = \"rest\"\nlisten = \"127.0.0.1:1\"\n"
	c, err := load(t, text, Sources{
		Environ: []string{"OGW_CLUSTER_DIR=env", "OGW_LOG_LEVEL=error", "OGW_REST_LISTEN=127.0.0.1:2", "OGW_SERVER_DRAIN=5s"},
		Set:     []string{"log.level=debug", "cluster.file_mode=0600", "log.access=true", "server.connections=7"},
		Listen:  map[string]string{"s3": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster.Dir != abs(t, "env") || c.Cluster.Cache != 2<<20 || c.Log.Level != "debug" || c.Cluster.FileMode != 0o600 ||
		!c.Log.Access || c.Server.Drain != Duration(5*time.Second) || c.Server.Connections != 7 || c.Gateways[0].Moves {
		t.Errorf("%+v", c)
	}
	if len(c.Gateways) != 2 || c.Gateways[0].Listen != "127.0.0.1:2" || c.Gateways[1].Protocol != "s3" {
		t.Errorf("%+v", c.Gateways)
	}
	c, err = load(t, text, Sources{Listen: map[string]string{"rest": "off"}})
	if err != nil || len(c.Gateways) != 0 {
		t.Errorf("off: %v %+v", err, c)
	}
	for _, set := range []string{"log.level", "log.levl=info", "server.drain=soon", "server.drain=30", "log.access=perhaps", "server.connections=x", "cluster.cache=x", "gateway.listen=x"} {
		if _, err := load(t, text, Sources{Set: []string{set}}); err == nil {
			t.Errorf("--set %s is accepted", set)
		}
	}
	if _, err := load(t, text, Sources{Set: []string{"admin.tokn=0123456789abcdef"}}); err == nil ||
		!strings.Contains(err.Error(), "--set admin.tokn: ") || strings.Contains(err.Error(), "0123456789abcdef") {
		t.Errorf("a secret under a wrong name: %v", err)
	}
	if _, err := load(t, text, Sources{Environ: []string{"OGW_SERVER_DRAIN=x"}}); err == nil || !strings.Contains(err.Error(), "OGW_SERVER_DRAIN") {
		t.Errorf("bad variable: %v", err)
	}
}

func TestFull(t *testing.T) {
	c, err := load(t, `
[cluster]
engine = "embedded"
dir = "/tmp/x"
cache = 1048576
inline = "8KiB"
dirty = "64MiB"
file_mode = "0640"
dir_mode = 0o750
[admin]
listen = "0.0.0.0:9090"
token = "0123456789abcdef"
insecure = true
pin = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
[audit]
data = true
syslog = "udp://192.0.2.1:514"
rotate = "1MiB"
keep = 3
[log]
level = "DEBUG"
format = "json"
access = true
[server]
connections = 10
drain = "1m30s"
[[gateway]]
protocol = "s3"
listen = "0.0.0.0:9000"
region = "eu-central-1"
domains = ["s3.example.com"]
v2_signatures = true
max_requests = 100
[[gateway]]
protocol = "rest"
listen = "0.0.0.0:8080"
tokens = ["0123456789abcdef"]
users = true
max_object = "5GiB"
uid = 1000
gid = 100
[[gateway]]
protocol = "nfs"
listen = "0.0.0.0:2049"
[[gateway.export]]
path = "/"
clients = ["10.0.0.0/8", "192.168.1.7"]
read_only = true
squash = "all"
anon_uid = 65534
[[gateway]]
protocol = "embed"
`, Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Drain != Duration(90*time.Second) || c.Cluster.DirMode != 0o750 || *c.Gateways[1].UID != 1000 || len(c.Gateways[2].Exports) != 1 {
		t.Errorf("%+v", c)
	}

	// What is printed reads back as the same, and shows secrets on demand only.
	var full, redacted bytes.Buffer
	if err := c.Write(&full, true); err != nil {
		t.Fatal(err)
	}
	again, err := load(t, full.String(), Sources{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, &full)
	}
	var second bytes.Buffer
	_ = again.Write(&second, true)
	if full.String() != second.String() {
		t.Errorf("printed:\n%s\nread and printed again:\n%s", &full, &second)
	}
	_ = c.Write(&redacted, false)
	if strings.Contains(redacted.String(), "0123456789abcdef") || !strings.Contains(full.String(), "0123456789abcdef") {
		t.Errorf("secrets: %s", &redacted)
	}
	shown, err := json.Marshal(c.Map(false))
	if err != nil || strings.Contains(string(shown), "0123456789abcdef") {
		t.Errorf("secrets: %s %v", shown, err)
	}
	everything, err := json.Marshal(c.Map(true))
	for _, want := range []string{`"drain":"1m30s"`, `"tokens":["0123456789abcdef"]`, `"anon_uid":65534`, `"max_object":"5GiB"`, `"protocol":"embed"`} {
		if err != nil || !strings.Contains(string(everything), want) {
			t.Errorf("%v: no %s in %s", err, want, everything)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]Size{
		"0": 0, "4096": 4096, "1k": 1024, "64MiB": 64 << 20, "64 mib": 64 << 20, "1.5G": 3 << 29, "2kb": 2000, "1TB": 1e12, "7b": 7,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "-1", "1e30G", "NaN", "inf", "1 2", "MiB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q is %d", s, got)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 1024: "1KiB", 64 << 20: "64MiB", 3 << 29: "1536MiB", 1 << 40: "1TiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(size), got, want)
		}
	}
}

func TestUnixSocketListen(t *testing.T) {
	for text, ok := range map[string]bool{
		"protocol = \"rest\"\nlisten = \"unix:/run/ogw/rest.sock\"":                                   true,
		"protocol = \"rest\"\nlisten = \"unix:/run/r\"\nsocket_mode = \"0660\"\nsocket_group = \"7\"": true,
		"protocol = \"rest\"\nlisten = \"unix:run/r\"":                                                false,
		"protocol = \"rest\"\nlisten = \"unix:/run/../r\"":                                            false,
		"protocol = \"rest\"\nlisten = \"unix:/" + strings.Repeat("r", maxSocketPath) + "\"":          false,
		"protocol = \"rest\"\nlisten = \"unix:/run/r\"\nsocket_group = \"no such group\"":             false,
		"protocol = \"rest\"\nlisten = \"127.0.0.1:1\"\nsocket_mode = \"0660\"":                       false,
		"protocol = \"s3\"\nlisten = \"unix:/run/s3\"":                                                false,
		"protocol = \"nfs\"\nlisten = \"unix:/run/nfs\"":                                              false,
	} {
		c := Default()
		err := c.parse("[[gateway]]\n" + text)
		if err == nil {
			c.fillGateways()
			err = c.Validate()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if ok && err == nil && c.Gateways[0].SocketMode == 0 {
			t.Errorf("%s: nobody could connect", text)
		}
	}
}

func TestV2Signatures(t *testing.T) {
	for value, want := range map[string]V2{`true`: V2All, `false`: V2None, `"all"`: V2All, `"urls"`: V2URLs, `"none"`: V2None, `""`: ""} {
		c, err := load(t, "[[gateway]]\nprotocol = \"s3\"\nv2_signatures = "+value+"\n", Sources{})
		if err != nil || c.Gateways[0].V2Signatures != want {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := load(t, "[[gateway]]\nprotocol = \"s3\"\nv2_signatures = \"some\"\n", Sources{}); err == nil || !strings.Contains(err.Error(), `"urls", "all" and "none"`) {
		t.Error(err)
	}
}
