package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/fusemount"
	"ogw/httpapi/admin"
)

// needReservedPorts skips where the test's NFS client would be refused.
func needReservedPorts(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: NFS gateways take calls from reserved ports")
	}
}

// needFUSE skips where the machine cannot mount.
func needFUSE(t *testing.T) {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("no FUSE here: %v", err)
	} else {
		f.Close()
	}
}

func (w *world) mkdir(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	// Whatever a failed test leaves must not keep the folder from removal.
	w.t.Cleanup(func() { _ = kernelUnmount(path, true) })
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMountOfProcess(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	d := w.serve(anyPort...)
	mnt, sub := w.mkdir("mnt"), w.mkdir("with space")
	d.put("/photos/a", "hello")
	if out := w.ok("mount", mnt); !strings.Contains(out, "is mounted by the process") {
		t.Errorf("%s", out)
	}
	if got := readFile(t, mnt+"/photos/a"); got != "hello" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(mnt+"/photos/b", []byte("from FUSE"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := d.get("/photos/b"); got != "from FUSE" {
		t.Errorf("%q", got)
	}
	// A write through another door is seen at once.
	d.put("/photos/a", "changed")
	if got := readFile(t, mnt+"/photos/a"); got != "changed" {
		t.Errorf("%q", got)
	}
	w.ok("mount", "--subtree", "photos", "--read-only", sub)
	if got := readFile(t, sub+"/a"); got != "changed" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(sub+"/c", nil, 0o644); err == nil {
		t.Error("a read-only mount takes writes")
	}
	var st admin.Status
	w.json(&st, "status")
	if len(st.Mounts) != 2 || st.Mounts[0].Dir != mnt {
		t.Errorf("%+v", st.Mounts)
	}
	full := w.mkdir("full")
	w.write("full/entry", "")
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"mount", mnt}, exitUsage, "mounted already"},
		{[]string{"mount", full}, exitUsage, "is not empty"},
		{[]string{"mount", filepath.Join(full, "entry")}, exitUsage, "is not a directory"},
		{[]string{"mount", filepath.Join(full, "entry", "below")}, exitUsage, "not a directory"},
		{[]string{"mount", filepath.Join(w.dir, "none")}, exitUsage, "does not exist"},
		{[]string{"mount", "--subtree", "nowhere", w.mkdir("other")}, exitNotFound, "subtree nowhere: "},
		{[]string{"mount", "-o", "subtree=photos/../..", w.mkdir("up")}, exitUsage, "takes no .. back"},
		{[]string{"mount", "-o", "subtree=photos/a", w.mkdir("file")}, exitFailure, "subtree photos/a: not a directory"},
		{[]string{"umount", w.dir}, exitNotFound, "no ogw mount"},
	} {
		if _, errs, code := w.ogw(c.args...); code != c.code || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s, want %d %s", c.args, code, errs, c.code, c.say)
		}
	}
	f, err := os.Open(mnt + "/photos/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := w.ogw("umount", mnt); code != exitFailure || !strings.Contains(errs, fmt.Sprintf("(process %d); --lazy", os.Getpid())) {
		t.Errorf("busy: %d %s", code, errs)
	}
	if err := kernelUnmount(mnt, false); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(process %d); --lazy", os.Getpid())) {
		t.Errorf("busy, by the kernel: %v", err)
	}
	f.Close()
	w.ok("umount", mnt)
	w.ok("umount", sub)
	if fusemount.IsMount(mnt) || fusemount.IsMount(sub) {
		t.Error("still mounted")
	}
	// The process unmounts when it stops.
	w.ok("mount", mnt)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if fusemount.IsMount(mnt) {
		t.Error("still mounted after the end")
	}
}

// A server without gateways stays when its last mount ends: nobody waits for it.
func TestMountOfServerAlone(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	w.serve("--s3", "off", "--rest", "off", "--nfs", "off")
	mnt := w.mkdir("mnt")
	w.ok("mount", mnt)
	if _, errs, _ := w.ogw("serve"); strings.Contains(errs, "ogw umount") {
		t.Errorf("umount does not end the server: %s", errs)
	}
	begun := time.Now()
	_, errs, code := w.ogw("umount", mnt)
	if took := time.Since(begun); code != 0 || errs != "" || took > mountWait/2 {
		t.Errorf("%d after %v: %s", code, took, errs)
	}
}

// Nothing is asked before a mount ends: a store that does not answer holds up no umount.
func TestUmountAsksForNothingElse(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(w.data(""), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", w.data(admin.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	api := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete || r.URL.Path != "/v1/mounts" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		_ = json.NewEncoder(rw).Encode(admin.Unmounted{Dir: "/mnt"})
	})}
	go func() { _ = api.Serve(l) }()
	defer api.Close()
	w.ok("umount", "/mnt")
	w.ok("umount", "--lazy", "/mnt")
}

func TestMountAlone(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	mnt := w.mkdir("mnt")
	start := func() (pid *os.Process, ended chan int) {
		t.Helper()
		c := w.command("mount", mnt)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended = make(chan int, 1)
		go func() {
			_ = c.Wait()
			ended <- c.ProcessState.ExitCode()
		}()
		t.Cleanup(func() { _ = c.Process.Kill() })
		for range 100 {
			if fusemount.IsMount(mnt) {
				return c.Process, ended
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("no mount")
		return nil, nil
	}
	end := func(ended chan int) int {
		t.Helper()
		select {
		case code := <-ended:
			return code
		case <-time.After(endLimit):
			t.Fatal("it does not end")
			return -1
		}
	}

	_, ended := start()
	if err := os.MkdirAll(mnt+"/bucket/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mnt+"/bucket/dir/f", []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := w.ok("status"); !strings.Contains(out, mnt) {
		t.Errorf("%s", out)
	}
	w.ok("umount", mnt)
	if code := end(ended); code != 0 {
		t.Errorf("exit code %d", code)
	}

	p, ended := start()
	if got := readFile(t, mnt+"/bucket/dir/f"); got != "kept" {
		t.Errorf("%q", got)
	}
	_ = p.Signal(syscall.SIGINT)
	if code := end(ended); code != 0 || fusemount.IsMount(mnt) {
		t.Errorf("exit code %d, mounted %v", code, fusemount.IsMount(mnt))
	}

	// A crash leaves a dead mount: umount removes it, and so does mount.
	for range 2 {
		p, ended = start()
		_ = p.Kill()
		end(ended)
		if !fusemount.IsMount(mnt) {
			t.Fatal("the kernel removed the dead mount itself")
		}
	}
	w.ok("umount", mnt)
	if fusemount.IsMount(mnt) {
		t.Error("the dead mount is left")
	}
}
