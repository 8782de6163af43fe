package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
)

// newStoreIn writes the configuration of a store on this machine.
func (w *world) newStoreIn(name string, lines ...string) (file string) {
	return w.write(filepath.Base(name)+".toml", fmt.Sprintf("[cluster]\ndir = %q\n%s\n", filepath.Join(w.dir, name), strings.Join(lines, "\n")))
}

func (w *world) mustNot(code int, says string, args ...string) {
	w.t.Helper()
	out, errs, got := w.ogw(args...)
	if got != code || !strings.Contains(errs, says) {
		w.t.Errorf("ogw %v: exit code %d, want %d and %q\n%s%s", args, got, code, says, out, errs)
	}
}

// TestMigrate moves a store while it is served, again, and a last time when it is not:
// what is there then are the same users, files and numbers.
func TestMigrate(t *testing.T) {
	w := newWorld(t)
	key := make([]byte, 32)
	rand.Read(key)
	keyFile := w.write("cluster.key", base64.StdEncoding.EncodeToString(key)+"\n")
	to := w.newStoreIn("new", fmt.Sprintf("key_file = %q", keyFile))
	d := w.serve(anyPort...)
	large := strings.Repeat("0123456789abcdef", 1<<18)
	d.put("/photos/small", "hello")
	d.put("/photos/large", large)
	d.put("/photos/gone", large)
	w.ok("user", "add", "alice", "--uid", "1000")
	w.ok("export", "add", "/photos", "--client", "10.0.0.0/8")
	var first backup.Moved
	w.json(&first, "migrate", "--to", to)
	if first.Finished || first.MovedBytes < 2*int64(len(large)) || first.Blobs != first.MovedBlobs {
		t.Errorf("the first pass: %+v", first)
	}
	for _, args := range [][]string{{"serve"}, {"check"}} {
		w.mustNot(exitFailure, "run ogw migrate again", append(args, "--config", to)...)
	}
	w.mustNot(exitUsage, "is being moved to this one", "restore", "--config", to, w.backup("backup", keyFile), "--key-file", keyFile)
	d.put("/photos/small", "hello again")
	d.put("/photos/more", large)
	if status, _ := d.http("DELETE", d.url("rest")+"/photos/gone", ""); status != 204 {
		t.Errorf("DELETE: %d", status)
	}
	if out := w.ok("migrate", "--to", to); !strings.Contains(out, "the new one is none yet") || !strings.Contains(out, "stop its gateways") {
		t.Errorf("%s", out)
	}
	var before, after admin.Whereis
	w.json(&before, "whereis", "photos/large")
	d.put("/photos/last", "last")
	root, err := readCredentials(w.data("credentials"))
	if err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	var last backup.Moved
	w.json(&last, "migrate", "--to", to)
	if !last.Finished || last.MovedBytes > int64(len(large)) || last.Secrets.Lost > 0 || last.Secrets.Sealed == 0 {
		t.Errorf("the last pass: %+v", last)
	}
	w.mustNot(exitUsage, "is here already", "migrate", "--to", to)
	for _, args := range [][]string{{"serve"}, {"check"}, {"bucket", "list"}, {"backup", "another", "--key-file", keyFile},
		{"migrate", "--to", w.newStoreIn("third")}} {
		w.mustNot(exitFailure, "the store was moved to "+filepath.Join(w.dir, "new")+" on ", args...)
	}
	w.mustNot(exitUsage, "nothing is restored over", "restore", "backup", "--key-file", keyFile)

	if out := w.ok("check", "--data", "--config", to); !strings.Contains(out, "clean") {
		t.Errorf("check: %s", out)
	}
	d = w.serve(append([]string{"--config", to}, anyPort...)...)
	for name, text := range map[string]string{"small": "hello again", "large": large, "more": large, "last": "last"} {
		if got := d.get("/photos/" + name); got != text {
			t.Errorf("%s: %.20q", name, got)
		}
	}
	if status, _ := d.http("GET", d.url("rest")+"/photos/gone", ""); status != 404 {
		t.Errorf("what was deleted: %d", status)
	}
	w.json(&after, "whereis", "photos/large", "--config", to)
	if before.Inode != after.Inode || before.ETag != after.ETag {
		t.Errorf("%+v, before %+v", after, before)
	}
	if out := w.ok("user", "list", "--config", to); !strings.Contains(out, "alice") {
		t.Errorf("%s", out)
	}
	if out := w.ok("export", "list", "--config", to); !strings.Contains(out, "/photos") {
		t.Errorf("%s", out)
	}
	w.mustNot(exitInUse, "a process serves", "migrate", "--to", to)
	if log := d.stderr.String(); strings.Contains(log, "not configured") {
		t.Errorf("%s", log)
	}
	err = filepath.Walk(filepath.Join(w.dir, "new"), func(path string, i os.FileInfo, err error) error {
		if err != nil || !i.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), root.Secret) {
			t.Errorf("%s has a secret in clear", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMigrateUndo: a store that was moved is one again after --undo, as it was.
func TestMigrateUndo(t *testing.T) {
	w := newWorld(t)
	to := w.newStoreIn("new")
	d := w.serve(anyPort...)
	d.put("/photos/a", "hello")
	w.mustNot(exitInUse, "in use by another process", "migrate", "--undo")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	w.mustNot(exitUsage, "there is nothing to undo", "migrate", "--undo")
	w.ok("migrate", "--to", to)
	w.mustNot(exitFailure, "ogw migrate --undo", "serve")
	if out := w.ok("migrate", "--undo"); !strings.Contains(out, filepath.Join(w.dir, "new")) {
		t.Errorf("%s", out)
	}
	w.mustNot(exitUsage, "there is nothing to undo", "migrate", "--undo")
	d = w.serve(anyPort...)
	if got := d.get("/photos/a"); got != "hello" {
		t.Errorf("%q", got)
	}
	d.put("/photos/b", "again")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	w.ok("migrate", "--to", w.newStoreIn("third"))
	var undone struct {
		Place string `json:"given_up"`
	}
	if w.json(&undone, "migrate", "--undo"); undone.Place != filepath.Join(w.dir, "third") {
		t.Errorf("%+v", undone)
	}
}

// TestMigrateCutOff ends a move between its last two steps: neither store is one, and the
// next call ends it.
func TestMigrateCutOff(t *testing.T) {
	w := newWorld(t)
	to := w.newStoreIn("new")
	d := w.serve(anyPort...)
	d.put("/photos/a", "hello")
	w.ok("migrate", "--to", to)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	cfg := config.Default()
	cfg.Cluster.Dir = w.data("")
	l, err := server.OpenLocal(t.Context(), cfg, server.LocalOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.MarkMoved(t.Context(), filepath.Join(w.dir, "new")), l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.mustNot(exitFailure, "the store was moved to", "serve")
	w.mustNot(exitFailure, "run ogw migrate again", "serve", "--config", to)
	if out := w.ok("migrate", "--to", to); !strings.Contains(out, "it is moved") {
		t.Errorf("%s", out)
	}
	d = w.serve(append([]string{"--config", to}, anyPort...)...)
	if got := d.get("/photos/a"); got != "hello" {
		t.Errorf("%q", got)
	}
}

// backup makes one in a folder, and returns its name.
func (w *world) backup(name, keyFile string) string {
	w.t.Helper()
	folder := filepath.Join(w.dir, name)
	w.ok("backup", folder, "--key-file", keyFile)
	return folder
}

// TestMigrateKilled ends a move with SIGKILL, while the store is served and while it is
// not: it goes on.
func TestMigrateKilled(t *testing.T) {
	w := newWorld(t)
	to := w.newStoreIn("new")
	d := w.serve(anyPort...)
	piece := make([]byte, 2<<20)
	for i := range 20 {
		rand.Read(piece)
		d.put(fmt.Sprintf("/photos/%d", i), string(piece))
	}
	kill := func(bytes int64) {
		t.Helper()
		c := w.command("migrate", "--to", to, "--limit", "20MiB")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(endLimit); w.folderBytes("new/blobs") < bytes; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%d bytes are moved", w.folderBytes("new/blobs"))
				break
			}
		}
		_ = c.Process.Kill()
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("it ended before it was killed: %v", err)
		}
	}
	kill(10 << 20)
	d.put("/photos/new", "new")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	kill(25 << 20)
	w.mustNot(exitFailure, "run ogw migrate again", "serve", "--config", to)
	var last backup.Moved
	w.json(&last, "migrate", "--to", to)
	if !last.Finished || last.MovedBytes > 25<<20 || last.Blobs < 20 {
		t.Errorf("%+v", last)
	}
	if out := w.ok("check", "--data", "--config", to); !strings.Contains(out, "clean") {
		t.Errorf("check: %s", out)
	}
	d = w.serve(append([]string{"--config", to}, anyPort...)...)
	if d.get("/photos/new") != "new" || d.get("/photos/19") != string(piece) {
		t.Error("other bytes than before")
	}
}

// folderBytes returns how much is in a folder.
func (w *world) folderBytes(name string) (n int64) {
	_ = filepath.Walk(filepath.Join(w.dir, name), func(_ string, i os.FileInfo, err error) error {
		if err == nil && i.Mode().IsRegular() {
			n += i.Size()
		}
		return nil
	})
	return n
}

// TestMigrateUsage: what cannot be is said before anything is moved.
func TestMigrateUsage(t *testing.T) {
	w := newWorld(t)
	to := w.newStoreIn("new")
	w.mustNot(exitUsage, "needs --to FILE", "migrate")
	w.mustNot(exitUsage, "takes no arguments", "migrate", "--to", to, "new")
	w.mustNot(exitUsage, "neither --to nor --limit", "migrate", "--to", to, "--undo")
	w.mustNot(exitNotFound, "there is no data folder", "migrate", "--undo")
	w.mustNot(exitUsage, "--admin has no meaning", "migrate", "--to", to, "--admin", "https://h:1")
	w.mustNot(exitUsage, "is not a number of bytes", "migrate", "--to", to, "--limit", "fast")
	w.mustNot(exitUsage, "no-such", "migrate", "--to", "no-such.toml")
	w.mustNot(exitUsage, "--to: configuration is wrong", "migrate", "--to", w.newStoreIn("bad", "engine = \"cloud\""))
	w.mustNot(exitNotFound, "there is no data folder", "migrate", "--to", to)
	w.env = []string{"OGW_TO_CLUSTER_DIR=ogw-data"}
	w.mustNot(exitUsage, "needs a data folder of its own", "migrate", "--to", to)
	w.env = []string{"OGW_CLUSTER_OBJECTS_SECRET=s", "OGW_TO_CLUSTER_KEY=k"} // each for its own
	w.mustNot(exitUsage, "configuration is wrong:\n  cluster.objects_secret", "migrate", "--to", to)
	w.env = w.env[1:]
	w.mustNot(exitUsage, "OGW_TO_CLUSTER_KEY: ", "migrate", "--to", to)
	w.env = []string{"OGW_TO_CLUSTER_OBJECTS_SECRET=s"}
	w.mustNot(exitUsage, "--to: configuration is wrong:\n  cluster.objects_secret", "migrate", "--to", to)
	w.env = nil
	if err := os.Mkdir(filepath.Join(w.dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.mustNot(exitNotFound, "there is no store", "migrate", "--config", w.newStoreIn("empty"), "--to", to)
	w.mustNot(exitUsage, "needs a data folder of its own", "migrate", "--to", w.newStoreIn("ogw-data"))
	w.mustNot(exitUsage, "lies in the other", "migrate", "--to", w.newStoreIn("ogw-data/within"))
	shared := "engine = \"shared\"\nmetadata = \"etcd://127.0.0.1:1\"\nobjects = \"http://127.0.0.1:1/b\"\nobjects_key = \"k\"\nobjects_secret = \"s\""
	w.mustNot(exitUsage, "it is one store", "migrate", "--config", w.newStoreIn("a", shared), "--to", w.newStoreIn("b", shared))
	moved := strings.Replace(shared, "127.0.0.1:1\"", "127.0.0.1:2\"", 1)
	w.mustNot(exitUsage, "another bucket or pool", "migrate", "--config", w.newStoreIn("a", shared), "--to", w.newStoreIn("b", moved))

	w.serve(anyPort...)
	other := w.serve(append([]string{"--config", to}, anyPort...)...)
	other.signal(syscall.SIGTERM)
	other.wait(endLimit)
	w.mustNot(exitUsage, "the store is not empty", "migrate", "--to", to)
	w.write("file", "")
	w.mustNot(exitFailure, "is not a folder", "migrate", "--to", w.newStoreIn("file"))
}

// TestMigrateSurvivingMount: what programs wrote through a mount that waits for a server
// is not left behind.
func TestMigrateSurvivingMount(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	to := w.newStoreIn("new")
	d := w.serve(anyPort...)
	d.put("/photos/a", "hello")
	mnt := w.mkdir("mnt")
	w.ok("mount", "-o", "survive", mnt)
	d.signal(syscall.SIGKILL)
	<-d.ended
	w.mustNot(exitUsage, "wait for a server", "migrate", "--to", to)
	d = w.serve(anyPort...)
	w.ok("migrate", "--to", to)
	w.ok("umount", mnt)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if out := w.ok("migrate", "--to", to); !strings.Contains(out, "it is moved") {
		t.Errorf("%s", out)
	}
}
