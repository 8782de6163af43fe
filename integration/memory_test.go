package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// memoryLoad is how long the load goes on.
const memoryLoad = 8 * time.Second

// memoryClients are enough to end a server whose budgets are those of a large
// machine, within seconds.
const memoryClients = 96

// memoryGroup makes a control group below that of this process, with a limit.
func memoryGroup(t *testing.T, bytes int) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(own)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		top, file := "/sys/fs/cgroup", "memory.max"
		switch {
		case len(f) != 3:
			continue
		case strings.Contains(","+f[1]+",", ",memory,"):
			top, file = "/sys/fs/cgroup/"+f[1], "memory.limit_in_bytes"
		case f[1] != "":
			continue
		}
		for _, parent := range []string{f[2], "/"} {
			group := filepath.Join(top, parent, fmt.Sprintf("ogw-test-%d", os.Getpid()))
			if os.Mkdir(group, 0o755) != nil {
				continue
			}
			t.Cleanup(func() { os.Remove(group) })
			if os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(bytes)), 0) == nil {
				return group
			}
		}
	}
	t.Skip("no memory control group can be made here (it takes root, and a writable hierarchy)")
	return ""
}

// memoryLimit is when programs on the mount are ended: those on one whose server
// was killed, as this one is when the test fails, may wait for one another.
const memoryLimit = 2 * time.Minute

// TestMemoryGroup: with the defaults, in a control group of little memory, a
// server that is loaded through all doors is not killed, and answers.
func TestMemoryGroup(t *testing.T) {
	for _, size := range []int{256 << 20, 512 << 20} {
		t.Run(fmt.Sprintf("%dMiB", size>>20), func(t *testing.T) {
			group := memoryGroup(t, size)
			script := filepath.Join(testenv.TempDir(t), "ogw")
			text := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", group, binary)
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			s := &server{testenv.NewServer(t, script, options{})}
			d := s.doors(t)
			late := time.AfterFunc(memoryLimit, func() {
				t.Errorf("the load takes longer than %v", memoryLimit)
				_ = unix.Unmount(d.mnt, unix.MNT_FORCE) // aborts the connection
			})
			defer late.Stop()
			for _, bucket := range []string{"load", "small"} {
				if err := d.rest.Write(bucket+"/before", "x"); err != nil {
					t.Fatal(err)
				}
			}
			loadMemory(t, func(client int) doors.Door {
				if client/2%4 == 0 {
					return s.nfsDoor(t, "/") // a connection of its own
				}
				return d.all()[client/2%4-1] // which has NFS last
			})
			for _, door := range d.all() {
				if err := door.Write("load/after-"+door.Name(), "x"); err != nil {
					t.Errorf("%s, after the load: %v", door.Name(), err)
				}
			}
			t.Logf("%d MiB at most", peakBytes(t, s)>>20)
		})
	}
}

// memoryRefusals are what a server with little memory says; clients try again.
var memoryRefusals = []string{"too_many_requests", "SlowDown"}

// loadMemory writes and reads with memoryClients, for memoryLoad: large bodies, and
// small ones that fill memtables and caches. Each client has a door.
func loadMemory(t *testing.T, door func(client int) doors.Door) {
	t.Helper()
	body := strings.Repeat("0123456789abcdef", 4<<20/16)
	until := time.Now().Add(memoryLoad)
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := map[string]int{} // of each door
	for i := range memoryClients {
		d := door(i)
		wait.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				name, content := fmt.Sprintf("load/%d-%d", i, n%4), body
				if i%2 != 0 {
					name, content = fmt.Sprintf("small/%d-%d", i, n), body[:16<<10]
				}
				err := d.Write(name, content)
				if err == nil {
					_, err = d.Read(name)
				}
				if err != nil && slices.ContainsFunc(memoryRefusals, func(s string) bool { return strings.Contains(err.Error(), s) }) {
					continue
				}
				if err != nil {
					t.Errorf("%s, %s: %v", d.Name(), name, err)
					return
				}
				mu.Lock()
				done[d.Name()]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	t.Logf("files that were written and read: %v", done)
}

const (
	// memoryAfter is what a server may keep after a load: its caches, which a load
	// of many small objects fills, and what Go's heap has between them.
	memoryAfter = 256 << 20
	// memoryWait is when, at the latest: the minute that is promised, and what the
	// end of the load still has to do.
	memoryWait = 90 * time.Second
)

// TestMemoryAfterLoad: a server gives back what a load took.
func TestMemoryAfterLoad(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	rest := doors.NewREST(s.REST)
	loadMemory(t, func(int) doors.Door { return rest })
	loaded, begin := residentBytes(t, s), time.Now()
	now := loaded
	for ; now > memoryAfter && time.Since(begin) < memoryWait; now = residentBytes(t, s) {
		time.Sleep(time.Second)
	}
	t.Logf("%d MiB after the load, %d MiB after %v more; %d MiB at most", loaded>>20, now>>20, time.Since(begin).Round(time.Second), peakBytes(t, s)>>20)
	if now > memoryAfter {
		t.Errorf("%d MiB are kept", now>>20)
	}
}
