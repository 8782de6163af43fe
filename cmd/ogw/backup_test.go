package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"ogw/httpapi/admin"
)

// A copy of the data folder of a stopped process is a backup: users and
// objects are there, the inode numbers are the same, and the check is clean.
func TestBackup(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	large := strings.Repeat("0123456789abcdef", 1<<18)
	d.put("/photos/small", "hello")
	d.put("/photos/large", large)
	w.ok("user", "add", "alice", "--uid", "1000")
	var before, after admin.Whereis
	w.json(&before, "whereis", "photos/large")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if out, err := exec.Command("cp", "-a", w.data(""), w.dir+"/backup").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.RemoveAll(w.data("")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.dir+"/backup", w.data("")); err != nil {
		t.Fatal(err)
	}
	w.ok("check", "--data")
	d = w.serve(anyPort...)
	if d.get("/photos/small") != "hello" || d.get("/photos/large") != large {
		t.Error("other bytes than before")
	}
	w.json(&after, "whereis", "photos/large")
	if before.Inode != after.Inode || before.ETag != after.ETag {
		t.Errorf("%+v, before %+v", after, before)
	}
	if out := w.ok("user", "list"); !strings.Contains(out, "alice") {
		t.Errorf("%s", out)
	}
}
