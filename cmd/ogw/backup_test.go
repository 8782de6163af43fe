package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/cmd/ogw/backup"
	"ogw/httpapi/admin"
)

// All that is damaged is named, in the store and in the backup before.
func TestDamageOfBackup(t *testing.T) {
	for _, snap := range []backup.Snapshot{{}, {Alone: "list 7"}, {Stats: backup.Stats{DamagedBlobs: 3}}, {Alone: "list 7", Stats: backup.Stats{DamagedBlobs: 3}}} {
		err := damageOf(&snap)
		if err == nil {
			err = errors.New("")
		} else if exitCode(err) != exitProblems {
			t.Errorf("code %d", exitCode(err))
		}
		list, blobs := strings.Contains(err.Error(), "list 7"), strings.Contains(err.Error(), "3 blobs")
		if list != (snap.Alone != "") || blobs != (snap.DamagedBlobs > 0) {
			t.Errorf("%q, %d: %v", snap.Alone, snap.DamagedBlobs, err)
		}
	}
}

// Who restores without the key that seals the secrets is told that nobody can sign in.
func TestRestoreTellsOfSecrets(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	file := func(name string, first byte) string {
		key := append([]byte{first}, make([]byte, 31)...)
		return w.write(name, base64.StdEncoding.EncodeToString(key)+"\n")
	}
	key, other := file("key", 1), file("other", 2)
	w.ok("backup", w.dir+"/sealed", "--key-file", key)
	w.ok("backup", w.dir+"/without", "--without-secrets")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	w.ok("backup", w.dir+"/keyed", "--set", "cluster.key_file="+key)
	const refused, absent = "all access keys, root's too, are refused until", "secrets are not in the backup"
	for i, c := range []struct {
		from string
		args []string
		say  string
	}{
		{"sealed", nil, refused},
		{"sealed", []string{"--set", "cluster.key_file=" + other}, refused},
		{"sealed", []string{"--set", "cluster.key_file=" + key}, ""},
		{"sealed", []string{"--key-file", key}, ""},
		{"keyed", nil, refused},
		{"keyed", []string{"--set", "cluster.key_file=" + other}, refused},
		{"keyed", []string{"--key-file", other}, refused},
		{"keyed", []string{"--key-file", other, "--set", "cluster.key_file=" + key}, ""},
		{"keyed", []string{"--key-file", key}, ""},
		{"without", nil, absent},
		{"without", []string{"--key-file", key}, absent},
	} {
		out := w.ok(append([]string{"restore", w.dir + "/" + c.from, "--dir", fmt.Sprint(w.dir, "/restored-", i)}, c.args...)...)
		for _, say := range []string{refused, absent} {
			if strings.Contains(out, say) != (say == c.say) {
				t.Errorf("%s %v: %s", c.from, c.args, out)
			}
		}
	}
	w.mustNot(exitUsage, "--key-file: it has not key ", "restore", w.dir+"/sealed", "--dir", w.dir+"/refused", "--key-file", other)
	if _, err := os.Stat(w.dir + "/refused"); !os.IsNotExist(err) {
		t.Errorf("it made a folder: %v", err)
	}
}

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

// TestBackupDamage: exit code 4 of each command that finds damage, in the store or in
// the repository, and not before.
func TestBackupDamage(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	for _, key := range []string{"gone", "whole"} {
		d.put("/photos/"+key, strings.Repeat("0123456789abcdef", 3<<16))
	}
	var where admin.Whereis
	w.json(&where, "whereis", "photos/gone")
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	w.ok("backup", "whole", "--without-secrets")
	if out := w.ok("backup", "verify", "whole"); !strings.Contains(out, "is whole") {
		t.Errorf("%s", out)
	}
	if err := os.Remove(where.Extents[0].Copies[0].Path); err != nil {
		t.Fatal(err)
	}
	w.mustNot(exitProblems, "1 blob of the store cannot be read", "backup", "backup", "--without-secrets")
	for i, args := range [][]string{{"backup", "verify", "backup"}, {"restore", "backup", "--dir", "new"}} {
		out, errs, code := w.ogw(args...)
		if code != exitProblems || strings.Contains(out, "whole") || !strings.Contains(errs, "1 blob could not be read when the backup was made") {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
		if args[0] == "restore" {
			args[3] = fmt.Sprint("new", i)
		}
		out, _, code = w.ogw(append(args, "--json")...)
		var done struct {
			DamagedBlobs int `json:"damaged_blobs"`
		}
		if err := json.Unmarshal([]byte(out), &done); err != nil || code != exitProblems || done.DamagedBlobs != 1 {
			t.Errorf("%v --json: %d %v %s", args, code, err, out)
		}
	}

	packs, err := filepath.Glob(filepath.Join(w.dir, "whole", "packs", "*", "*"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	pack := packs[len(packs)-1] // the blobs come last
	b, err := os.ReadFile(pack)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(pack, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustNot(exitProblems, "the repository is damaged", "restore", "whole", "--dir", "skipped")
	w.mustNot(exitFailure, "is not finished", "check", "--dir", "skipped")
	w.mustNot(exitProblems, "1 damaged blob in the backup left out", "restore", "whole", "--dir", "skipped", "--skip-damaged")
	if out, _, code := w.ogw("check", "--dir", "skipped"); code != exitProblems || strings.Count(out, "missing-blob: ") != 1 || !strings.Contains(out, "photos/") || !strings.Contains(out, "1 problem\n") {
		t.Errorf("%d %s", code, out)
	}

	manifests, err := filepath.Glob(filepath.Join(w.dir, "whole", "snapshots", "*.json"))
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	w.ok("backup", "list", "whole")
	if err := os.Truncate(manifests[0], 100); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"backup", "whole", "--without-secrets"}, {"backup", "list", "whole"}, {"backup", "list", "whole", "--json"},
		{"backup", "verify", "whole"}, {"backup", "remove", "whole", "--keep", "1"}, {"restore", "whole", "--dir", "newer"}} {
		w.mustNot(exitProblems, "the repository is damaged", args...)
	}
}
