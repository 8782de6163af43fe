package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"ogw/httpapi/admin"
)

// TestCheckMissing: a check that reads nothing reports files of data that are
// gone or cut, and which objects are lost with them.
func TestCheckMissing(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	bodies := map[string]string{
		"photos/gone":  strings.Repeat("0123456789abcdef", 3<<16),
		"photos/cut":   strings.Repeat("0123456789abcdef", 3<<16),
		"photos/small": strings.Repeat("0123456789abcdef", 1<<14),
		"photos/whole": strings.Repeat("0123456789abcdef", 3<<16),
	}
	lost := map[string]admin.Whereis{}
	for key, body := range bodies {
		d.put("/"+key, body)
		var where admin.Whereis
		w.json(&where, "whereis", key)
		lost[key] = where
	}
	delete(lost, "photos/whole")
	file := func(key string) string { return lost[key].Extents[0].Copies[0].Path }
	if out := w.ok("check"); !strings.Contains(out, "clean\n") {
		t.Errorf("%s", out)
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if err := os.Remove(file("photos/gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file("photos/cut"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file("photos/small")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"check", "--repair"}, {"check"}} {
		out, _, code := w.ogw(args...)
		if code != exitProblems || strings.Count(out, "missing-blob: ") != len(lost) || !strings.Contains(out, "3 problems") {
			t.Errorf("%v: %d %s", args, code, out)
		}
		for key, where := range lost {
			if !strings.Contains(out, key+": blob "+where.Extents[0].Blob) || !strings.Contains(out, file(key)) {
				t.Errorf("%v: nothing of %s: %s", args, key, out)
			}
		}
	}
	out, _, code := w.ogw("check", "--data")
	if code != exitProblems || !strings.Contains(out, "3 problems") {
		t.Errorf("check --data: %d %s", code, out)
	}
	for key := range lost {
		if strings.Count(out, key) != 1 {
			t.Errorf("check --data: %s is not named once: %s", key, out)
		}
	}
}
