package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A full disk is reported as such, loses nothing, and ends when there is room.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(w.data(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.data(""), "tmpfs", 0, "size=192m,mode=700"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.data(""), unix.MNT_DETACH) })
	d := w.serve(anyPort...)
	d.put("/b/first", "kept")
	body := strings.Repeat("0123456789abcdef", 1<<20) // 16 MiB
	stored := 0
	full := false
	for i := range 20 {
		status, answer := d.http(http.MethodPut, d.url("rest")+"/b/big"+itoa(int64(i)), body)
		if status == 201 {
			stored++
			continue
		}
		if status != http.StatusInsufficientStorage || !strings.Contains(answer, "no_space") {
			t.Fatalf("full disk: %d %s", status, answer)
		}
		if status, _ := d.http(http.MethodGet, d.url("rest")+"/b/big"+itoa(int64(i)), ""); status != 404 {
			t.Errorf("half an object: %d", status)
		}
		full = true
		break
	}
	if !full || stored == 0 {
		t.Fatalf("stored %d objects, full %v", stored, full)
	}
	if got := d.get("/b/first"); got != "kept" {
		t.Errorf("%q", got)
	}
	if got := d.get("/b/big0"); got != body {
		t.Errorf("%d bytes", len(got))
	}
	for i := range stored {
		if status, answer := d.http(http.MethodDelete, d.url("rest")+"/b/big"+itoa(int64(i)), ""); status != 204 {
			t.Fatalf("remove from a full disk: %d %s", status, answer)
		}
	}
	d.put("/b/again", "fits")
	d.signal(unix.SIGTERM)
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
