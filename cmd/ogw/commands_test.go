package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
)

// Every command does the same with a process and without one.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	if _, errs, code := w.ogw("user", "list"); code != exitNotFound || !strings.Contains(errs, "no data folder") {
		t.Errorf("no folder: %d %s", code, errs)
	}
	d := w.serve(anyPort...)
	t.Run("running", func(t *testing.T) { testCommands(&world{t, w.dir, w.env}, "one") })
	d.put("/photos/a.txt", "hello")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	t.Run("alone", func(t *testing.T) { testCommands(&world{t, w.dir, w.env}, "two") })
	if out := w.ok("status"); !strings.Contains(out, "none serves") {
		t.Errorf("%s", out)
	}
	if out := w.ok("purge", "photos/a.txt"); !strings.Contains(out, "nothing is cached") {
		t.Errorf("%s", out)
	}
}

// testIdentities gives groups and roles policies, and asks who may do what.
func testIdentities(w *world, name string) {
	t := w.t
	file := func(text string) string {
		f := filepath.Join(t.TempDir(), "document")
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	readers := file(`{"Version":"2012-10-17","Statement":[{"Sid":"reads","Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::photos/*"}]}`)
	trust := file(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam:::user/` + name + `"},"Action":"sts:AssumeRole"}]}`)
	for range 7 { // more versions than are kept
		w.ok("policy", "put", "readers", readers)
	}
	var p admin.Policy
	w.json(&p, "policy", "show", "readers")
	if p.Version != 7 || !strings.Contains(string(p.Document), "reads") {
		t.Errorf("%+v", p)
	}
	w.ok("group", "add", "staff")
	w.ok("group", "join", "staff", name)
	w.ok("policy", "attach", "readers", "--group", "staff")
	var x admin.Role
	w.json(&x, "role", "add", "deploy", "--trust", trust, "--max-session", "2h")
	if x.MaxSession != 7200 || !strings.Contains(string(x.Trust), ":user/"+name) {
		t.Errorf("%+v", x)
	}
	w.ok("policy", "attach", "readers", "--role", "deploy")
	w.ok("role", "trust", "deploy", "--trust", trust)
	if out := w.ok("role", "list") + w.ok("group", "list") + w.ok("policy", "list"); !strings.Contains(out, x.ARN) || !strings.Contains(out, "staff") || !strings.Contains(out, p.ARN) {
		t.Error(out)
	}
	var may []admin.Simulated
	w.json(&may, "policy", "simulate", "GetObject", "photos/none", "--who", name, "--who", "role/deploy", "--who", "anonymous", "--key", "aws:SourceIp=192.0.2.7")
	if len(may) != 3 || !may[0].Allowed || may[0].Sid != "reads" || !may[1].Allowed || may[1].Policy != "policy readers" || may[2].Allowed {
		t.Errorf("%+v", may)
	}
	if out := w.ok("policy", "simulate", "s3:GetObject", "photos/none"); !strings.Contains(out, "role/deploy") || !strings.Contains(out, `"reads" of policy readers allows it`) {
		t.Error(out)
	}
	if out := w.ok("role", "revoke", "deploy"); !strings.Contains(out, "have ended") {
		t.Error(out)
	}
	for _, wrong := range [][]string{{"policy", "put", "readers", trust}, {"policy", "attach", "readers"}, {"role", "add", "x", "--trust", readers},
		{"policy", "simulate", "GetObject", "photos/a", "--who", "nobody"}, {"policy", "remove", "readers"}, {"group", "remove", "staff"}} {
		if _, errs, code := w.ogw(wrong...); code == 0 || errs == "" {
			t.Errorf("ogw %q: %d %s", wrong, code, errs)
		}
	}
	w.ok("role", "remove", "deploy")
	w.ok("policy", "detach", "readers", "--group", "staff")
	w.ok("group", "leave", "staff", name)
	w.ok("group", "remove", "staff")
	w.ok("policy", "remove", "readers")
}

func testCommands(w *world, name string) {
	t := w.t
	var u admin.User
	// The uid of the first run's user, who is removed, is handed on explicitly.
	w.json(&u, "user", "add", name, "--uid", "2000", "--gid", "3000", "--inherit")
	if u.UID != 2000 || u.GID != 3000 || len(u.Keys) != 1 || u.Keys[0].Secret == "" {
		t.Errorf("%+v", u)
	}
	testIdentities(w, name)
	w.ok("user", "add", "reader", "--may-read", "photos/a", "--may-read", "other")
	w.ok("user", "remove", "reader")
	var rotated admin.User
	w.json(&rotated, "user", "rotate", name)
	if len(rotated.Keys) != 1 || rotated.Keys[0].ID == u.Keys[0].ID {
		t.Errorf("%+v", rotated)
	}
	var more admin.User
	w.json(&more, "user", "key", "add", name)
	if len(more.Keys) != 2 || more.Keys[1].Secret == "" || more.Keys[0].ID != rotated.Keys[0].ID {
		t.Errorf("%+v", more)
	}
	if out := w.ok("user", "key", "remove", name, more.Keys[1].ID); !strings.Contains(out, "is removed") {
		t.Error(out)
	}
	if out := w.ok("user", "rename", name, name+"-renamed"); !strings.Contains(out, "is "+name+"-renamed now") {
		t.Error(out)
	}
	w.ok("user", "rename", name+"-renamed", name)
	if out := w.ok("user", "list"); !strings.Contains(out, name) || !strings.Contains(out, rotated.Keys[0].ID) || strings.Contains(out, rotated.Keys[0].Secret) {
		t.Errorf("%s", out)
	}
	// The file follows root's keys.
	var root admin.User
	w.json(&root, "user", "rotate", "root")
	if b, err := os.ReadFile(w.data(server.CredentialsName)); err != nil || !strings.Contains(string(b), root.Keys[0].Secret) {
		t.Errorf("%v %s", err, b)
	}
	if out := w.ok("bucket", "add", "bucket-"+name, "--owner", name); !strings.Contains(out, "is made") {
		t.Errorf("%s", out)
	}
	var buckets []admin.Bucket
	w.json(&buckets, "bucket", "list")
	found := false
	for _, b := range buckets {
		found = found || b.Name == "bucket-"+name && b.Owner == name
	}
	if !found {
		t.Errorf("%+v", buckets)
	}
	var usage admin.Usage
	w.json(&usage, "bucket", "usage", "bucket-"+name)
	var b admin.Bucket
	if w.json(&b, "bucket", "show", "bucket-"+name); b.Durability != "sync" || !b.Inherited || b.Owner != name {
		t.Errorf("%+v", b)
	}
	if out := w.ok("bucket", "set", "bucket-"+name, "--durability", "async"); !strings.Contains(out, "async") {
		t.Errorf("%s", out)
	}
	b = admin.Bucket{}
	if w.json(&b, "bucket", "show", "bucket-"+name); b.Durability != "async" || b.Inherited {
		t.Errorf("%+v", b)
	}
	if out := w.ok("bucket", "set", "bucket-"+name, "--durability", "default"); !strings.Contains(out, "sync (of the configuration)") {
		t.Errorf("%s", out)
	}
	w.ok("bucket", "remove", "bucket-"+name)
	w.ok("user", "remove", name)
	var report admin.CheckReport
	w.json(&report, "check")
	if !report.Clean {
		t.Errorf("%+v", report)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"user", "remove", name}, exitNotFound, "no such user"},
		{[]string{"user", "remove", "root"}, exitUsage, "ogw: root is the only administrator"},
		{[]string{"purge", "/"}, exitUsage, "names no bucket or file"},
		{[]string{"purge", "nothere/x"}, exitNotFound, "nothere/x: "},
		{[]string{"mount", "/nonexistent/dir"}, exitUsage, "ogw: bad mount point: /nonexistent/dir does not exist"},
		{[]string{"user", "add", "root"}, exitFailure, "exists"},
		{[]string{"user", "add", "a/b"}, exitUsage, "user name"},
		{[]string{"user", "add", "reader", "--may-read", "/p"}, exitUsage, "does not begin with the name of a bucket"},
		{[]string{"user", "add", "reader", "--may-read", "b/p", "--administrator"}, exitUsage, "not only read"},
		{[]string{"bucket", "remove", "none"}, exitNotFound, "no such bucket"},
		{[]string{"bucket", "add", "NOT-LEGAL"}, exitUsage, "bucket name"},
		{[]string{"bucket", "usage", "none"}, exitNotFound, "no such bucket"},
		{[]string{"bucket", "show", "none"}, exitNotFound, "no such bucket"},
		{[]string{"bucket", "set", "none"}, exitUsage, "nothing to set"},
		{[]string{"bucket", "set", "none", "--durability", "soon"}, exitUsage, "--durability soon: it is sync, async or default"},
		{[]string{"bucket", "set", "none", "--durability", "async"}, exitNotFound, "no such bucket"},
		{[]string{"lock", "free"}, exitUsage, "needs --client"},
	} {
		if _, errs, code := w.ogw(c.args...); code != c.code || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s, want %d %s", c.args, code, errs, c.code, c.say)
		}
	}
}

func TestWhereisAndPurge(t *testing.T) {
	w := newWorld(t)
	w.write("ogw.toml", "[[gateway]]\nprotocol = \"rest\"\nlisten = \"127.0.0.1:0\"\n[[gateway]]\nprotocol = \"s3\"\nlisten = \"127.0.0.1:0\"\ndomains = [\"s3.example.com\"]\n")
	w.env = []string{"OGW_CONFIG=ogw.toml"}
	d := w.serve()
	d.put("/photos/small", "hello")
	d.put("/photos/large", strings.Repeat("x", 3<<20))
	d.put("/photos.example.com/y", "hello")
	check := func() {
		t.Helper()
		if out := w.ok("whereis", "photos/small"); !strings.Contains(out, "exists: 5 bytes") || !strings.Contains(out, "inline") {
			t.Errorf("%s", out)
		}
		var found admin.Whereis
		w.json(&found, "whereis", "photos.s3.example.com/large")
		total := int64(0)
		for _, e := range found.Extents {
			total += e.Length
			if e.Kind != "blob" || len(e.Copies) == 0 {
				t.Errorf("%+v", e)
				continue
			}
			if _, err := os.Stat(e.Copies[0].Path); err != nil {
				t.Errorf("the named file: %v", err)
			}
		}
		if !found.Exists || found.Path != "photos/large" || total != 3<<20 {
			t.Errorf("%+v", found)
		}
		if out := w.ok("whereis", "photos/"); !strings.Contains(out, "photos/ exists: a directory") || strings.Contains(out, "OFFSET") {
			t.Errorf("%s", out)
		}
		if out := w.ok("whereis", "photos.example.com/y"); !strings.Contains(out, "exists") {
			t.Errorf("%s", out)
		}
		if out, _, code := w.ogw("whereis", "photos/none"); code != exitNotFound || !strings.Contains(out, "does not exist") {
			t.Errorf("%d %s", code, out)
		}
		if out, _, code := w.ogw("whereis", "photos/none", "--json"); code != exitNotFound || !strings.Contains(out, `"exists": false`) {
			t.Errorf("%d %s", code, out)
		}
	}
	check()
	var purged admin.Purged
	w.json(&purged, "purge", "photos.s3.example.com/large")
	if purged.Path != "photos/large" {
		t.Errorf("%+v", purged)
	}
	if got := d.get("/photos/large"); len(got) != 3<<20 {
		t.Errorf("a purge removed bytes: %d are left", len(got))
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	check() // the command opens the cluster itself
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"frobnicate"}, "no command"},
		{[]string{"serve", "--colour"}, "colour"},
		{[]string{"serve", "now"}, "no arguments"},
		{[]string{"whereis"}, "one argument"},
		{[]string{"whereis", "a", "b"}, "one argument"},
		{[]string{"user", "add"}, "name"},
		{[]string{"user", "frobnicate"}, "no command"},
		{[]string{"user", "add", "x", "--uid", "-5"}, "uid"},
		{[]string{"user", "add", "x", "--uid", "many"}, "uid"},
		{[]string{"mount"}, "takes a folder to mount at"},
		{[]string{"serve", "--set", "log.levl=debug"}, `did you mean "log.level"`},
		{[]string{"serve", "--config", "none.toml"}, "none.toml"},
		{[]string{"serve", "--rest", "0.0.0.0:8080"}, "anybody could change everything"},
		{[]string{"status", "--admin", "gateway:9090"}, "not a URL"},
		{[]string{"config", "test"}, "name the file"},
		{[]string{"config", "test", "none.toml"}, "stat none.toml: no such file"},
		{[]string{"serv"}, `did you mean "serve"`},
		{[]string{"user", "ad", "x"}, `did you mean "add"?; ogw user --help`},
		{[]string{"user", "add"}, "ogw user add takes one argument"},
		{[]string{"lock", "free"}, "needs --client"},
		{[]string{"audit", "--class", "foo"}, `"foo" is none of admin, access, data`},
		{[]string{"audit", "--door", "xx"}, "none of s3, iam, rest,"},
		{[]string{"audit", "--result", "OK"}, "none of ok, refused, failed"},
		{[]string{"lock", "free", "--client", "a", "b"}, "no arguments"},
		{[]string{"lock", "list", "a", "b"}, "one argument at the most"},
	} {
		if _, errs, code := w.ogw(c.args...); code != exitUsage || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s, want %s", c.args, code, errs, c.say)
		}
	}
	for _, args := range [][]string{{}, {"--help"}, {"user"}, {"serve", "--help"}, {"help"}, {"help", "user", "add"}} {
		if out := w.ok(args...); !strings.Contains(out, "USAGE") {
			t.Errorf("%v: %s", args, out)
		}
	}
	for _, args := range [][]string{{"--version"}, {"-v"}, {"version"}} {
		if out := w.ok(args...); !strings.HasPrefix(out, "ogw ") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := w.ok("user", "add", "--help"); strings.Contains(out, "(default: false)") || strings.Contains(out, "value") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(w.data("")); !os.IsNotExist(err) {
		t.Errorf("a wrong command line made a data folder: %v", err)
	}
}

// An argument that reads "help" is a name, as any other: nothing succeeds without
// having done what it is named for.
func TestHelpIsAName(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"whereis"}, {"stop"}, {"audit"}, {"bucket", "show"}, {"user", "key", "add"}, {"backup", "list"}, {"mount"}} {
		for _, word := range []string{"h", "help"} {
			if out, _, code := w.ogw(append(args, word)...); code == 0 || strings.Contains(out, "USAGE") {
				t.Errorf("ogw %q %s: %d %s", args, word, code, out)
			}
		}
	}
	d := w.serve(anyPort...)
	w.ok("user", "add", "alice")
	for _, args := range [][]string{{"user", "add", "h"}, {"group", "add", "help"}, {"group", "join", "help", "h"}, {"group", "join", "help", "alice"}} {
		w.ok(args...)
	}
	if out := w.ok("group", "list"); !strings.Contains(out, "alice") {
		t.Error(out)
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
}

func TestConfigCommand(t *testing.T) {
	w := newWorld(t)
	good := w.write("good.toml", "[admin]\nlisten = \"127.0.0.1:9\"\ntoken = \"0123456789abcdef\"\n")
	bad := w.write("bad.toml", "[cluster]\ndirr = 1\n")
	if out := w.ok("config", "test", good); !strings.Contains(out, "is right") {
		t.Errorf("%s", out)
	}
	if _, errs, code := w.ogw("config", "test", bad); code != exitUsage || !strings.Contains(errs, "line 2") || !strings.Contains(errs, "cluster.dir") {
		t.Errorf("%d %s", code, errs)
	}
	away := w.write("away.toml", "[cluster]\nkey_file = \"/no/key\"\n[audit]\nfile = \"/no/dir/a.log\"\n")
	if _, errs, code := w.ogw("config", "test", away); code != exitUsage || !strings.Contains(errs, "cluster.key_file: ") || !strings.Contains(errs, "audit.file: ") {
		t.Errorf("%d %s", code, errs)
	}
	for name, text := range map[string]string{ // what serve accepts
		"made.toml":  "[cluster]\ndir = \"new/data\"\n[audit]\nfile = \"new/data/a.log\"\n",
		"above.toml": "[cluster]\ndir = \"new/data\"\n[audit]\nfile = \"new/a.log\"\n",
		"off.toml":   "[audit]\nfile = \"/no/dir/a.log\"\nadmin = false\naccess = false\n",
	} {
		w.ok("config", "test", w.write(name, text))
	}
	below := w.write("below.toml", "[cluster]\ndir = \"new/data\"\n[audit]\nfile = \"new/data/below/a.log\"\n")
	if _, errs, code := w.ogw("config", "test", below); code != exitUsage || !strings.Contains(errs, "audit.file: ") {
		t.Errorf("%d %s", code, errs)
	}
	w.env = []string{"OGW_LOG_LEVEL=warn"}
	out := w.ok("config", "-c", good)
	if !strings.Contains(out, `level = "warn"`) || strings.Contains(out, "0123456789abcdef") {
		t.Errorf("%s", out)
	}
	if out := w.ok("config", "-c", good, "--secrets"); !strings.Contains(out, "0123456789abcdef") {
		t.Errorf("%s", out)
	}
	// What it prints is a configuration.
	if out := w.ok("config", "test", w.write("again.toml", w.ok("config"))); !strings.Contains(out, "is right") {
		t.Errorf("%s", out)
	}
	var shown struct {
		Server  map[string]any
		Gateway []map[string]any
	}
	w.json(&shown, "config")
	if shown.Server["drain"] != "30s" || len(shown.Gateway) != 3 {
		t.Errorf("%+v", shown)
	}
	var any map[string]any
	if out := w.ok("version"); !strings.HasPrefix(out, "ogw ") {
		t.Errorf("%s", out)
	}
	w.json(&any, "version")
}

func TestPermute(t *testing.T) {
	app := newApp(&environment{})
	for in, want := range map[string]string{
		"ogw whereis a/b --json":               "ogw whereis --json a/b",
		"ogw whereis a/b --dir x":              "ogw whereis --dir x a/b",
		"ogw whereis a/b --dir=x":              "ogw whereis --dir=x a/b",
		"ogw --dir x whereis a/b":              "ogw whereis --dir x a/b",
		"ogw user add ann --uid 5 --json":      "ogw user add --uid 5 --json ann",
		"ogw whereis -- --json":                "ogw whereis -- --json",
		"ogw user add --json whereis":          "ogw user add --json whereis",
		"ogw bucket list":                      "ogw bucket list",
		"ogw mount /mnt -d x --read-only":      "ogw mount -d x --read-only /mnt",
		"ogw serve --set a=b --set c=d --json": "ogw serve --set a=b --set c=d --json",
	} {
		if got := strings.Join(permute(app, strings.Fields(in)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"/a/b": "/a/b", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "a/./b c/d": "'a/./b c/d'", "a$b": "'a$b'"} {
		if got := shellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// What serve prints can be copied and pasted.
func TestAnnouncement(t *testing.T) {
	a := announcement{Version: "v1", Program: "/opt/new things/ogw", Dir: "/srv/my data", Credentials: "/srv/my data/credentials", AccessKey: "AK", SecretKey: "SK",
		Gateways: []admin.Gateway{
			{Protocol: "s3", Name: "s3", Listen: "127.0.0.1:9000", TLS: true}, {Protocol: "s3", Name: "inside", Listen: "127.0.0.1:9001"}, {Protocol: "rest", Listen: "[::1]:8080"}, {Protocol: "nfs", Listen: "127.0.0.1:2050"},
			{Protocol: "nfs", Name: "here", Listen: "127.0.0.1:2049", Portmapper: true}, {Protocol: "nfs", Name: "net", Listen: "10.1.2.3:2051", Portmapper: true},
			{Protocol: "nfs", Name: "lone", Listen: "10.1.2.3:2052"},
		}}
	text := a.text()
	for _, want := range []string{
		"AWS_SHARED_CREDENTIALS_FILE='/srv/my data/credentials'", "aws --endpoint-url https://127.0.0.1:9000 ", "curl -T FILE http://[::1]:8080/photos/FILE",
		"-o vers=3,tcp,port=2050,mountport=2050,nolock 127.0.0.1:/ /mnt", "-o vers=3,tcp,nolock 127.0.0.1:/ /mnt",
		"-o vers=3,tcp 10.1.2.3:/ /mnt", "-o vers=3,tcp,port=2052,mountport=2052,nolock 10.1.2.3:/ /mnt", "'/opt/new things/ogw' mount --dir '/srv/my data' /mnt", "AK", "SK", "S3    https", "S3 (inside) http://127.0.0.1:9001",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	quiet := announcement{First: true, Credentials: "/srv/credentials"}
	if text := quiet.text(); !strings.Contains(text, "/srv/credentials") || strings.Contains(text, "secret key  ") {
		t.Errorf("without a terminal:\n%s", text)
	}
	b, err := json.Marshal(announcement{})
	if err != nil || strings.Contains(string(b), "secret_key") {
		t.Errorf("%s %v", b, err)
	}
}
