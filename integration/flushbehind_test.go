package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// behindBound is how long after its close a file may be lost, with room for a machine
// that is busy.
const behindBound = 4 * time.Second

// closedFile is a file that a program wrote and closed.
type closedFile struct {
	path, body string
	synced     bool
	at         time.Time // of the close; zero: it was not answered
	over       string    // what it replaced by a rename; else ""
}

// TestKillFlushBehind kills a server with mounts whose close does not wait for the disk:
// what was synced is there, and what was closed a moment before the last one; of the rest
// each file is whole, or empty as it was made; and what replaced a file is never empty.
func TestKillFlushBehind(t *testing.T) {
	for _, over := range []string{"io_uring=off", "io_uring=auto", "survive"} {
		t.Run(over, func(t *testing.T) {
			s := newServer(t, options{})
			s.makeBucket("crash")
			for round := range testenv.Count(t, "OGW_KILL_ROUNDS", 1) {
				dir := filepath.Join(s.Dir, fmt.Sprintf("mnt%d", round))
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				s.OGW("mount", "-o", "flush_behind,"+over, dir)
				w := closers{mnt: dir, name: fmt.Sprintf("crash/%d", round)}
				w.start()
				time.Sleep(behindBound + time.Second)
				if over == "survive" { // a process with open files there could not start a server
					w.stop.Store(true)
					w.Wait()
				}
				killed := time.Now()
				s.Kill()
				w.stop.Store(true)
				w.Wait()
				if over != "survive" {
					s.Try("umount", "-l", dir)
				}
				s.Start()
				lost := checkClosed(t, s, w.list, killed)
				if over == "survive" {
					if lost > 0 {
						t.Errorf("%d files are empty that the next server should have stored", lost)
					}
					s.OGW("umount", dir)
				}
			}
			checkClean(t, s)
		})
	}
}

// closers are programs that write files and close them.
type closers struct {
	sync.WaitGroup
	mnt, name string
	stop      atomic.Bool

	mu   sync.Mutex
	list []*closedFile
}

func (w *closers) start() {
	for n := range 4 {
		w.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				c := &closedFile{path: fmt.Sprintf("%s-%d-%d", w.name, n, i), synced: i%3 == 0}
				c.body = strings.Repeat(fmt.Sprint(i, " "), 1+i%7*1000) // some are larger than what is stored inline
				if i%3 == 2 {
					c.over = fmt.Sprintf("%s-%d", w.name, n)
				}
				w.mu.Lock()
				w.list = append(w.list, c)
				w.mu.Unlock()
				if c.write(w.mnt) != nil { // the server was killed
					return
				}
				c.at = time.Now()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
}

func (c *closedFile) write(mnt string) error {
	f, err := os.OpenFile(filepath.Join(mnt, c.path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(c.body)
	if err == nil && c.synced {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && c.over != "" {
		err = os.Rename(filepath.Join(mnt, c.path), filepath.Join(mnt, c.over))
	}
	return err
}

// checkClosed compares what is there with what was closed, in that order, and returns how
// many files lost what was written.
func checkClosed(t *testing.T, s *server, list []*closedFile, killed time.Time) (lost int) {
	t.Helper()
	rest := doors.NewREST(s.REST)
	newest := map[string][]string{} // what a replaced name may hold
	for _, c := range list {
		answered := !c.at.IsZero() && c.at.Before(killed)
		old := answered && killed.Sub(c.at) > behindBound
		if c.over != "" {
			if old {
				newest[c.over] = nil
			}
			newest[c.over] = append(newest[c.over], c.body)
			continue
		}
		got, err := rest.Read(c.path)
		switch {
		case !answered || err == nil && got == c.body:
		case c.synced || old:
			t.Errorf("%s, closed %v before the end, synced %v: %d bytes of %d, %v", c.path, killed.Sub(c.at), c.synced, len(got), len(c.body), err)
		case err != nil || got != "":
			t.Errorf("%s has a part: %d bytes of %d, %v", c.path, len(got), len(c.body), err)
		default:
			lost++
		}
	}
	for name, bodies := range newest {
		if got, err := rest.Read(name); err != nil || !slices.Contains(bodies, got) {
			t.Errorf("%s, which was replaced again and again, holds %.20q, %d bytes, %v", name, got, len(got), err)
		}
	}
	t.Logf("%d files, of which %d lost what was written", len(list), lost)
	return lost
}

// TestFlushBehindFull fills the disk by files whose close does not wait for it: programs
// get ENOSPC, what they closed before without an error stays, also over a stop, and closing
// goes on when there is room.
func TestFlushBehindFull(t *testing.T) {
	const size = 384 << 20
	disk := smallDisk(t, size)
	s := newServer(t, options{Data: filepath.Join(disk, "data")})
	t.Cleanup(s.Stop) // before the unmount
	s.makeBucket("full")
	mnt := s.Mount("-o", "flush_behind")
	body := strings.Repeat("0123456789abcdef", 64<<10/16)
	path := func(i int) string { return fmt.Sprintf("full/%d", i) }
	closed := 0
	var full error
	for ; closed < 2*size/len(body); closed++ {
		c := closedFile{path: path(closed), body: body}
		if full = c.write(mnt); full != nil {
			break
		}
	}
	if !errors.Is(full, syscall.ENOSPC) {
		t.Fatalf("after %d files: %v, want ENOSPC", closed, full)
	}
	t.Logf("full after %d files", closed)
	rest := doors.NewREST(s.REST)
	right := func(when string, from int) {
		t.Helper()
		for i := from; i < closed; i++ {
			if got, err := os.ReadFile(filepath.Join(mnt, path(i))); when != "restarted" && (err != nil || string(got) != body) {
				t.Fatalf("%s: file %d of %d: %d bytes, %v", when, i, closed, len(got), err)
			}
			if got, err := rest.Read(path(i)); err != nil || got != body {
				if when == "full" && i >= closed-behindFiles { // what is in memory alone S3 and REST do not show
					continue
				}
				t.Fatalf("%s: object %d of %d: %d bytes, %v", when, i, closed, len(got), err)
			}
		}
	}
	right("full", 0)
	gone := closed / 2
	for i := range gone {
		if err := os.Remove(filepath.Join(mnt, path(i))); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "space to come back", func() error {
		os.Remove(filepath.Join(mnt, path(-1)))
		return (&closedFile{path: path(-1), body: body, synced: true}).write(mnt)
	})
	right("room", gone)
	s.Stop()
	s.Start()
	right("restarted", gone)
	checkClean(t, s)
}

// behindFiles bounds how many closed files the server has in memory.
const behindFiles = 1024
