package admin

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/httpapi/apierr"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// fakeProcess records what it is asked: the process itself lives in cmd/ogw.
type fakeProcess struct {
	mounts  []Mount
	ready   error
	stopped bool
}

func (p *fakeProcess) Gateways() []Gateway {
	return []Gateway{{Name: "s3", Protocol: "s3", Listen: "x:1", State: "serving"}}
}
func (p *fakeProcess) Mounts() []Mount { return append([]Mount{}, p.mounts...) }
func (p *fakeProcess) Mount(_ context.Context, m Mount) error {
	p.mounts = append(p.mounts, m)
	return nil
}
func (p *fakeProcess) Umount(_ context.Context, dir string, lazy bool) (ends bool, err error) {
	if len(p.mounts) == 0 || p.mounts[0].Dir != dir {
		return false, vfs.ErrNotExist
	}
	if !lazy {
		return false, vfs.ErrBusy
	}
	p.mounts = nil
	return true, nil
}
func (p *fakeProcess) Store() (string, error) { return "writable", nil }

func (p *fakeProcess) Ready(context.Context) error { return p.ready }
func (p *fakeProcess) Stop()                       { p.stopped = true }

func newServer(t *testing.T, p Process) (*Server, *vfs.FS) {
	t.Helper()
	ctx := context.Background()
	store := mem.New(mem.Options{Seed: 1})
	fs, err := vfs.Open(ctx, store, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(fs.Close(ctx), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return New(Config{
		FS: fs, Process: p, Logger: slog.New(slog.DiscardHandler), Version: "v1", Dir: "/data", Engine: "mem",
		PID: 7, Started: time.Now(), Domains: []string{"s3.example.com"},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
	}), fs
}

func put(t *testing.T, fs *vfs.FS, path, body string) {
	t.Helper()
	if _, err := fs.PutObject(context.Background(), vfs.ObjectName{Key: path}, strings.NewReader(body),
		vfs.PutOptions{Size: int64(len(body)), Owner: vfs.Root}); err != nil {
		t.Fatal(err)
	}
}

// status returns the HTTP status of an error of the client.
func status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

func TestStoredPath(t *testing.T) {
	domains := []string{"example.org", "s3.example.com", "s3.lan", "s3.example.org"}
	for arg, want := range map[string]string{
		"photos/a.jpg":                         "photos/a.jpg",
		"/photos/a.jpg":                        "photos/a.jpg",
		"/s3.example.com/a":                    "s3.example.com/a",
		"s3://photos/a.jpg":                    "photos/a.jpg",
		"photos.example.com/a.jpg":             "photos.example.com/a.jpg",
		"photos.s3.example.com/a.jpg":          "photos/a.jpg",
		"Photos.S3.example.com/A.jpg":          "photos/A.jpg",
		"photos.s3.lan:9000/a//b":              "photos/a//b",
		"s3.example.com/photos/a.jpg":          "photos/a.jpg",
		"http://s3.example.com:9000/photos/a":  "photos/a",
		"https://photos.s3.example.com/a/../b": "photos/a/../b",
		"s3.example.org/photos/a":              "photos/a",
		"photos.s3.example.org/a":              "photos/a",
		"photos.example.org/a":                 "photos/a",
		"photos":                               "photos",
		// Of URLs, as the S3 door takes them.
		"https://photos.s3.example.com/a%20b%2520c+d":        "photos/a b%20c+d",
		"http://s3.example.com/photos/a%2Fb?versionId=1&x=/": "photos/a/b",
		"https://photos.s3.example.com?list-type=2":          "photos/",
		"http://s3.example.com/photos/a#b":                   "photos/a",
		"https://photos.example.com/a%3Fb":                   "photos.example.com/a?b",
		"https://photos.s3.example.com/100%":                 "photos/100%",
		// What is no URL is a key as it is.
		"s3://photos/a%20b?c#d":         "photos/a%20b?c#d",
		"photos/a%20b?c":                "photos/a%20b?c",
		"photos.s3.example.com/a%20b?c": "photos/a%20b?c",
		"photos/":                       "photos/",
	} {
		if got := StoredPath(arg, domains); got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
}

func TestUsersAndBuckets(t *testing.T) {
	ctx := context.Background()
	s, fs := newServer(t, nil)
	c := Local(s)
	ann, err := c.AddUser(ctx, AddUser{Name: "ann"})
	if err != nil || ann.UID != FirstUID || ann.GID != FirstUID || len(ann.Keys) != 1 || len(ann.Keys[0].Secret) != 40 || len(ann.Keys[0].ID) != 20 {
		t.Fatalf("%+v %v", ann, err)
	}
	uid, gid := uint32(5), uint32(6)
	bob, err := c.AddUser(ctx, AddUser{Name: "bob", UID: &uid, GID: &gid, Admin: true, AccessKey: "AKBOB", SecretKey: "bobs-secret"})
	if err != nil || bob.UID != 5 || bob.GID != 6 || !bob.Admin || bob.Keys[0].ID != "AKBOB" {
		t.Fatalf("%+v %v", bob, err)
	}
	if cy, err := c.AddUser(ctx, AddUser{Name: "cy"}); err != nil || cy.UID != FirstUID+1 {
		t.Errorf("the next free uid: %+v %v", cy, err)
	}
	for _, x := range []struct {
		q    AddUser
		want int
	}{
		{AddUser{Name: "ann"}, 409},
		{AddUser{Name: "dora", AccessKey: "AKBOB", SecretKey: "another-one"}, 409},
		{AddUser{Name: ""}, 400},
		{AddUser{Name: "a/b"}, 400},
		{AddUser{Name: "-x"}, 400},
		{AddUser{Name: strings.Repeat("x", maxUserName+1)}, 400},
		{AddUser{Name: "dora", AccessKey: "AK1234"}, 400},
		{AddUser{Name: "dora", AccessKey: "A,B", SecretKey: "long-enough"}, 400},
		{AddUser{Name: "dora", AccessKey: "AK1234", SecretKey: "short"}, 400},
	} {
		if _, err := c.AddUser(ctx, x.q); status(err) != x.want {
			t.Errorf("%+v: %v, want %d", x.q, err, x.want)
		}
	}
	users, err := c.Users(ctx)
	if err != nil || len(users) != 3 {
		t.Fatalf("%+v %v", users, err)
	}
	for _, u := range users {
		if u.Keys[0].Secret != "" {
			t.Errorf("the list shows secrets: %+v", u)
		}
	}

	kept, err := c.Rotate(ctx, "ann", true)
	if err != nil || len(kept.Keys) != 2 || kept.Keys[0].Secret == "" || kept.Keys[1].ID != ann.Keys[0].ID || kept.Keys[1].Secret != "" {
		t.Fatalf("%+v %v", kept, err)
	}
	alone, err := c.Rotate(ctx, "ann", false)
	if err != nil || len(alone.Keys) != 1 {
		t.Fatalf("%+v %v", alone, err)
	}
	if _, _, err := fs.Users().ByKey(ctx, ann.Keys[0].ID); !errors.Is(err, vfs.ErrNoSuchUser) {
		t.Errorf("the old key is still good: %v", err)
	}
	if _, err := c.Rotate(ctx, "nobody", false); status(err) != 404 {
		t.Errorf("rotate of nobody: %v", err)
	}

	made, err := c.AddBucket(ctx, AddBucket{Name: "photos", Owner: "ann"})
	if err != nil || made.UID != ann.UID || made.Owner != "ann" {
		t.Fatalf("%+v %v", made, err)
	}
	for _, x := range []struct {
		q    AddBucket
		want int
	}{
		{AddBucket{Name: "photos", Owner: "bob"}, 409}, {AddBucket{Name: "X", Owner: "ann"}, 400}, {AddBucket{Name: "10.0.0.1", Owner: ann.ID}, 400}, {AddBucket{Name: "films"}, 404},
		{AddBucket{Name: "films", Owner: "nobody"}, 404},
	} {
		if _, err := c.AddBucket(ctx, x.q); status(err) != x.want {
			t.Errorf("%+v: %v, want %d", x.q, err, x.want)
		}
	}
	put(t, fs, "photos/a", "12345")
	put(t, fs, "photos/b/c", "123")
	if u, err := c.Usage(ctx, "photos"); err != nil || u.Objects != 2 || u.Bytes != 8 {
		t.Errorf("usage %+v %v", u, err)
	}
	if err := c.RemoveBucket(ctx, "photos"); status(err) != 409 {
		t.Errorf("removal of a bucket with objects: %v", err)
	}
	if _, err := fs.DeleteObjects(ctx, "photos", []string{"a", "b/c"}); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Buckets(ctx); err != nil || len(list) != 1 || list[0].Owner != "ann" {
		t.Errorf("%+v %v", list, err)
	}
	if err := c.RemoveBucket(ctx, "photos"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveBucket(ctx, "photos"); status(err) != 404 {
		t.Errorf("second removal: %v", err)
	}
	if err := c.RemoveUser(ctx, "bob"); status(err) != 400 {
		t.Errorf("removal of the only administrator: %v", err)
	}
	if _, err := c.AddUser(ctx, AddUser{Name: "eve", Admin: true}); err != nil {
		t.Error(err)
	}
	if err := c.RemoveUser(ctx, "bob"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveUser(ctx, "bob"); status(err) != 404 {
		t.Errorf("second removal: %v", err)
	}
}

// Two administrators who are removed at once do not leave a store without one.
func TestKeepsAdmin(t *testing.T) {
	ctx := context.Background()
	s, fs := newServer(t, nil)
	c := Local(s)
	names := []string{"ann", "bob"}
	for range 100 {
		for _, name := range names {
			if _, err := c.AddUser(ctx, AddUser{Name: name, Admin: true}); err != nil && status(err) != 409 {
				t.Fatal(err)
			}
		}
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() { errs[i] = c.RemoveUser(ctx, name) })
		}
		wg.Wait()
		if status(errs[0])+status(errs[1]) != 400 {
			t.Fatalf("%v, %v", errs[0], errs[1])
		}
	}
	if all, err := fs.Users().List(ctx); err != nil || len(all) != 1 || !all[0].Admin {
		t.Errorf("%+v %v", all, err)
	}
}

func TestIdentities(t *testing.T) {
	ctx := context.Background()
	s, fs := newServer(t, nil)
	c := Local(s)
	must := func(u User, err error) User {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if err := fs.Users().Add(ctx, users.User{Name: "root", Admin: true, Founder: true}); err != nil {
		t.Fatal(err)
	}
	ann := must(c.AddUser(ctx, AddUser{Name: "ann"}))
	more := must(c.AddKey(ctx, "ann", AddKey{}))
	if len(more.Keys) != 2 || more.Keys[0].Secret != "" || more.Keys[1].Secret == "" || more.Keys[1].ID == ann.Keys[0].ID {
		t.Errorf("%+v", more)
	}
	given := must(c.AddKey(ctx, "ann", AddKey{"AKGIVEN", "given-secret"}))
	if given.Keys[2].ID != "AKGIVEN" || given.Keys[2].Secret != "given-secret" {
		t.Errorf("%+v", given)
	}
	if _, err := c.AddKey(ctx, "ann", AddKey{AccessKey: "AKALONE"}); status(err) != 400 {
		t.Error(err)
	}
	if left := must(c.RemoveKey(ctx, "ann", ann.Keys[0].ID)); len(left.Keys) != 2 || left.Keys[0].ID != more.Keys[1].ID {
		t.Errorf("%+v", left)
	}
	if _, err := c.RemoveKey(ctx, "ann", ann.Keys[0].ID); status(err) != 404 {
		t.Error(err)
	}
	if _, _, err := fs.Users().ByKey(ctx, ann.Keys[0].ID); !errors.Is(err, vfs.ErrNoSuchUser) {
		t.Errorf("a removed key is still good: %v", err)
	}

	if anna := must(c.RenameUser(ctx, "ann", "anna")); anna.ID != ann.ID || anna.Name != "anna" {
		t.Errorf("%+v", anna)
	}
	if b, err := c.AddBucket(ctx, AddBucket{Name: "photos", Owner: ann.ID}); err != nil || b.Owner != "anna" || b.UID != ann.UID {
		t.Errorf("%+v %v", b, err)
	}
	if b, err := c.AddBucket(ctx, AddBucket{Name: "films"}); err != nil || b.Owner != "root" {
		t.Errorf("%+v %v", b, err)
	}
	for name, want := range map[string]int{"": 400, "a/b": 400, "root": 409, ann.ID: 400} {
		if _, err := c.RenameUser(ctx, "anna", name); status(err) != want {
			t.Errorf("%q: %v", name, err)
		}
	}

	if err := c.RemoveUser(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	_, err := c.AddUser(ctx, AddUser{Name: "ann", UID: &ann.UID})
	if status(err) != 409 || !strings.Contains(err.Error(), `removed user "anna"`) ||
		!strings.Contains(err.Error(), fmt.Sprintf("ogw user add ann --uid %d --inherit", ann.UID)) {
		t.Error(err)
	}
	if next := must(c.AddUser(ctx, AddUser{Name: "ann"})); next.UID == ann.UID || next.ID == ann.ID {
		t.Errorf("%+v has what %+v had", next, ann)
	}
	if heir := must(c.AddUser(ctx, AddUser{Name: "heir", UID: &ann.UID, Inherit: true})); heir.UID != ann.UID || heir.ID == ann.ID {
		t.Errorf("%+v", heir)
	}
	if _, err := c.AddUser(ctx, AddUser{Name: "other", UID: &ann.UID, Inherit: true}); status(err) != 409 || !strings.Contains(err.Error(), `user "heir"`) {
		t.Error(err)
	}
	if _, err := c.AddUser(ctx, AddUser{Name: "other", Inherit: true}); status(err) != 400 {
		t.Error(err)
	}
}

// Users and roles are simulated as who they are, whatever their names and paths.
func TestSimulate(t *testing.T) {
	ctx := context.Background()
	s, fs := newServer(t, nil)
	c := Local(s)
	for _, name := range []string{"ann", vfs.Anonymous} {
		if _, err := c.AddUser(ctx, AddUser{Name: name, MayRead: []string{"photos"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fs.IAM().CreateRole(ctx, iam.NewRole{Name: "deploy", Path: "/ci/", Trust: []byte(
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"arn:aws:iam:::user/ann"}}}`)}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"ann": true, "user/anonymous": true, "role/deploy": false, "anonymous": false}
	q := Simulate{Action: "GetObject", Resource: "photos/a"}
	list, err := c.Simulate(ctx, q)
	if err != nil || len(list) != len(want) {
		t.Fatalf("%+v %v", list, err)
	}
	for _, x := range list {
		if may, ok := want[x.Who]; !ok || may != x.Allowed {
			t.Errorf("%+v", x)
		}
	}
	for who, may := range want {
		q.Who = []string{who}
		if list, err := c.Simulate(ctx, q); err != nil || len(list) != 1 || list[0].Who != who || list[0].Allowed != may {
			t.Errorf("%s: %+v %v", who, list, err)
		}
	}
	for _, nobody := range []string{"nobody", "user/nobody", "role/nobody", "role/ann"} {
		q.Who = []string{nobody}
		if _, err := c.Simulate(ctx, q); status(err) != 404 {
			t.Errorf("%s: %v", nobody, err)
		}
	}
}

func TestObjects(t *testing.T) {
	ctx := context.Background()
	s, fs := newServer(t, nil)
	c := Local(s)
	put(t, fs, "photos/small", "12345")
	put(t, fs, "photos/large", strings.Repeat("x", 1<<20))
	w, err := c.Whereis(ctx, "photos.s3.example.com/small")
	if err != nil || !w.Exists || w.Size != 5 || w.Path != "photos/small" || len(w.Extents) != 1 || w.Extents[0].Kind != "inline" {
		t.Errorf("%+v %v", w, err)
	}
	w, err = c.Whereis(ctx, "photos/large")
	if err != nil || len(w.Extents) == 0 || w.Extents[0].Kind != "blob" || len(w.Extents[0].Copies) == 0 || w.Extents[0].Copies[0].Node == "" {
		t.Errorf("%+v %v", w, err)
	}
	for _, none := range []string{"photos/none", "nowhere/x", "photos/none/deeper"} {
		if w, err := c.Whereis(ctx, none); err != nil || w.Exists {
			t.Errorf("%s: %+v %v", none, w, err)
		}
	}
	if _, err := c.Whereis(ctx, ""); status(err) != 400 {
		t.Errorf("no path: %v", err)
	}
	if p, err := c.Purge(ctx, "photos/small"); err != nil || p.Path != "photos/small" {
		t.Errorf("%+v %v", p, err)
	}
	if r, err := c.Check(ctx, CheckRequest{Data: true}); err != nil || !r.Clean {
		t.Errorf("%+v %v", r, err)
	}
}

// TestCheckMendsMany: more problems than a report lists, all of them mended, leave none.
func TestCheckMendsMany(t *testing.T) {
	ctx := context.Background()
	store := mem.New(mem.Options{Seed: 1})
	fs, err := vfs.Open(ctx, store, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close(ctx) })
	const many = 1001
	err = store.KV.Update(ctx, func(tx cluster.Txn) error {
		for i := range uint64(many) { // attributes of inodes that do not exist
			if err := tx.Set(binary.BigEndian.AppendUint64([]byte{'x'}, 1<<40+i), []byte("user.name")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Local(New(Config{FS: fs, Logger: slog.New(slog.DiscardHandler)}))
	if r, err := c.Check(ctx, CheckRequest{}); err != nil || r.Clean || r.Left() != many || r.Mendable != many {
		t.Errorf("%d left, %d mendable, clean %v, %v", r.Left(), r.Mendable, r.Clean, err)
	}
	r, err := c.Check(ctx, CheckRequest{Repair: true})
	if err != nil || !r.Clean || r.Left() != 0 || r.Repaired != many || r.Dropped == 0 {
		t.Errorf("%d left of %d over the list, %d repaired, clean %v, %v", r.Left(), r.Dropped, r.Repaired, r.Clean, err)
	}
}

func TestProcess(t *testing.T) {
	ctx := context.Background()
	p := &fakeProcess{}
	s, _ := newServer(t, p)
	c := Local(s)
	st, err := c.Status(ctx)
	if err != nil || !st.Running || st.PID != 7 || len(st.Gateways) != 1 || st.Dir != "/data" || len(st.FSID) != 16 {
		t.Errorf("%+v %v", st, err)
	}
	if err := c.Mount(ctx, Mount{Dir: "relative"}); status(err) != 400 {
		t.Errorf("relative path: %v", err)
	}
	if err := c.Mount(ctx, Mount{Dir: "/mnt", ReadOnly: true}); err != nil || len(p.mounts) != 1 || !p.mounts[0].ReadOnly {
		t.Errorf("%v %+v", err, p.mounts)
	}
	if _, err := c.Umount(ctx, "/other", false); status(err) != 404 {
		t.Errorf("umount of nothing: %v", err)
	}
	if _, err := c.Umount(ctx, "/mnt", false); status(err) != 409 {
		t.Errorf("busy: %v", err)
	}
	if u, err := c.Umount(ctx, "/mnt", true); err != nil || u != (Unmounted{"/mnt", true, 7}) {
		t.Errorf("%+v %v", u, err)
	}
	get := func(path string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code
	}
	if get("/healthz") != 200 || get("/readyz") != 200 || get("/metrics") != 200 || get("/v2/status") != 404 || get("/v1/stop") != 405 {
		t.Error("probes")
	}
	for _, name := range []string{"", "goroutine", "heap?debug=1", "symbol", "cmdline", "profile?seconds=1", "trace?seconds=0.01"} {
		if code := get("/debug/pprof/" + name); code != 200 {
			t.Errorf("profile %q: %d", name, code)
		}
	}
	if get("/debug/pprof/nothing") != 404 {
		t.Error("a profile that does not exist")
	}
	p.ready = vfs.ErrUnavailable
	if get("/readyz") != 503 || get("/healthz") != 200 {
		t.Error("not ready, but alive")
	}
	if err := c.Stop(ctx); err != nil || !p.stopped {
		t.Errorf("stop: %v", err)
	}

	// Without a process, what needs one is refused.
	alone, _ := newServer(t, nil)
	if err := Local(alone).Stop(ctx); status(err) != 501 || !strings.Contains(err.Error(), "no process") {
		t.Errorf("stop of nothing: %v", err)
	}
	if st, err := Local(alone).Status(ctx); err != nil || st.Running {
		t.Errorf("%+v %v", st, err)
	}
}

func TestBadRequests(t *testing.T) {
	s, _ := newServer(t, &fakeProcess{})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/users", "{", 400},
		{"POST", "/v1/users", `{"name":"x"}{}`, 400},
		{"POST", "/v1/users", `{"name":"x","colour":"red"}`, 400},
		{"POST", "/v1/users", `{"name":7}`, 400},
		{"POST", "/v1/users", `{"name":"` + strings.Repeat("x", maxRequestBytes) + `"}`, 400},
		{"POST", "/v1/check", "", 400},
		{"PUT", "/v1/users", "{}", 405},
		{"GET", "/nowhere", "", 404},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.want {
			t.Errorf("%s %s %.40s: %d %s, want %d", c.method, c.path, c.body, w.Code, w.Body, c.want)
		}
	}
}

func TestToken(t *testing.T) {
	s, _ := newServer(t, &fakeProcess{})
	server := httptest.NewServer(s.WithToken("a-long-admin-token", nil))
	defer server.Close()
	ctx := context.Background()
	if _, err := remote(t, server.URL, RemoteConfig{Token: "wrong"}).Status(ctx); status(err) != 401 {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := remote(t, server.URL, RemoteConfig{Token: ""}).Status(ctx); status(err) != 401 {
		t.Errorf("no token: %v", err)
	}
	c := remote(t, server.URL, RemoteConfig{Token: "a-long-admin-token"})
	if _, err := c.Status(ctx); err != nil {
		t.Error(err)
	}
	// The secrets of users are nobody's to take along.
	own := base64.StdEncoding.EncodeToString(make([]byte, 32))
	if _, err := c.AddBackup(ctx, AddBackup{Keys: own}); status(err) != 403 {
		t.Errorf("a backup sealed with a key of the caller's: %v", err)
	}
	if _, err := c.AddBackup(ctx, AddBackup{DropSecrets: true}); err != nil {
		t.Errorf("a backup without secrets: %v", err)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/debug/pprof/heap": 401} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// Sockets work in folders whose path is longer than a socket address.
func TestSocket(t *testing.T) {
	ctx := context.Background()
	s, _ := newServer(t, &fakeProcess{})
	short := t.TempDir()
	long := filepath.Join(short, strings.Repeat("long/", 30))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{short, long} {
		path := filepath.Join(dir, SocketName)
		if _, err := Dial(ctx, path); !errors.Is(err, ErrNotRunning) {
			t.Errorf("no socket: %v", err)
		}
		if dir == short { // what a crash leaves
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			l.Close()
			if _, err := Dial(ctx, path); !errors.Is(err, ErrNotRunning) {
				t.Errorf("dead socket: %v", err)
			}
		}
		l, err := ListenSocket(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		server := &http.Server{Handler: s}
		done := make(chan error)
		go func() { done <- server.Serve(l) }()
		c, err := Dial(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := c.Status(ctx); err != nil || st.PID != 7 {
			t.Errorf("%+v %v", st, err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// Operators see what went wrong, other doors' clients do not.
func TestErrorDetails(t *testing.T) {
	p := &fakeProcess{ready: fmt.Errorf("%w: disk 7 is on fire", vfs.ErrUnavailable)}
	s, _ := newServer(t, p)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	if !strings.Contains(w.Body.String(), "on fire") {
		t.Errorf("%s", w.Body)
	}
	if got := apierr.Of(p.ready).Status; got != 503 {
		t.Errorf("%d", got)
	}
}

// TestProbeWithoutToken: at a TCP address anybody may ask whether the gateways serve; why
// they do not is for who has the token, and a wrong one there is a guess as elsewhere.
func TestProbeWithoutToken(t *testing.T) {
	p := &fakeProcess{ready: fmt.Errorf("%w: disk 7 is on fire", vfs.ErrUnavailable)}
	s, _ := newServer(t, p)
	h := s.WithToken("a-long-admin-token", guess.New())
	ask := func(path, authorization string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", authorization)
		h.ServeHTTP(w, r)
		return w
	}
	for _, authorization := range []string{"", "Bearer ", "Bearer wrong", "Basic a-long-admin-token"} {
		if w := ask("/readyz", authorization); w.Code != 503 || strings.Contains(w.Body.String(), "fire") || w.Header().Get("Retry-After") == "" {
			t.Errorf("%q: %d %s", authorization, w.Code, w.Body)
		}
	}
	if w := ask("/readyz", "Bearer a-long-admin-token"); w.Code != 503 || !strings.Contains(w.Body.String(), "on fire") {
		t.Errorf("with the token: %d %s", w.Code, w.Body)
	}
	p.ready = fmt.Errorf("%w: /data/x", vfs.ErrNotExist) // whose text other answers have
	if w := ask("/readyz", ""); w.Code != 404 || strings.Contains(w.Body.String(), "data") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	p.ready = nil
	for _, authorization := range []string{"", "Bearer wrong", "Bearer a-long-admin-token"} {
		if w := ask("/readyz", authorization); w.Code != 200 {
			t.Errorf("%q: %d %s", authorization, w.Code, w.Body)
		}
	}
	for i := range 200 {
		ask("/readyz", fmt.Sprint("Bearer guess-", i))
	}
	if w := ask("/v1/status", "Bearer another"); w.Code != 429 {
		t.Errorf("after guesses: %d %s", w.Code, w.Body)
	}
	if w := ask("/readyz", ""); w.Code != 200 {
		t.Errorf("the probe after guesses: %d %s", w.Code, w.Body)
	}
}
