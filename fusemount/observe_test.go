package fusemount

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Every request is observed with its error, and the mount does the same as
// without an observer.
func TestObserve(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		var mu sync.Mutex
		seen := map[string]map[syscall.Errno]int{}
		dir, _ := mountFS(t, openFS(t), Options{Transport: over, Observe: func(op string, took time.Duration, e syscall.Errno) {
			mu.Lock()
			defer mu.Unlock()
			if seen[op] == nil {
				seen[op] = map[syscall.Errno]int{}
			}
			seen[op][e]++
			if took < 0 {
				t.Errorf("%s took %v", op, took)
			}
		}})
		if IsDead(dir) || IsDead(t.TempDir()) || IsDead("/nonexistent") {
			t.Error("IsDead of a mount that lives, a plain directory or nothing")
		}
		name := dir + "/f"
		if err := os.WriteFile(name, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != "text" {
			t.Errorf("%q %v", b, err)
		}
		if err := os.MkdirAll(dir+"/d/e", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Rmdir(dir + "/d"); !errors.Is(err, syscall.ENOTEMPTY) {
			t.Error(err)
		}
		if _, err := os.ReadDir(dir); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, op := range []string{"create", "write", "flush", "lookup", "mkdir", "opendir", "statfs"} {
			if seen[op][0] == 0 {
				t.Errorf("no %s in %v", op, seen)
			}
		}
		if seen["rmdir"][syscall.ENOTEMPTY] != 1 {
			t.Errorf("rmdir: %v", seen["rmdir"])
		}
	})
}
