package survive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// noticedFiles of noticedBytes are read and changed at once: with few of them,
	// most changes meet pages that are being read.
	noticedFiles = 2
	noticedBytes = 1 << 20
	// noticeRounds is how often a server is killed meanwhile. Without threads of
	// their own for notifications, every third kill left a process that did not end.
	noticeRounds = 6
	// restartLimit bounds the time from a kill until the next server serves.
	restartLimit = 10 * time.Second
)

func noticed(i int) string { return fmt.Sprintf("../noticed-%d", i%noticedFiles) }

// reread reads the files that somebody else changes, again and again from the server.
func reread(w *world) error {
	b := make([]byte, noticedBytes)
	return w.run(func(i int) error {
		f, err := os.Open(noticed(i))
		if err != nil {
			return err
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return err
		}
		if _, err := f.ReadAt(b, 0); err != nil {
			return err
		}
		return f.Close()
	})
}

// rewrite changes the files that somebody else reads.
func rewrite(w *world) error {
	b := make([]byte, noticedBytes/8)
	return w.run(func(i int) error {
		f, err := os.OpenFile(noticed(i), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		for range 8 {
			if _, err := f.WriteAt(b, rand.Int64N(noticedBytes-int64(len(b)))); err != nil {
				return err
			}
		}
		return f.Close()
	})
}

// A server that is killed while it notifies the kernel of changes to files that are
// being read ends, and the next one starts at once.
func TestKilledWhileNotifying(t *testing.T) {
	s := watch(t, testLimit)
	top, other := s.mount("survive"), s.mount("survive,attr_timeout=2")
	dir := s.bucket(top)
	for i := range noticedFiles {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(noticed(i))), make([]byte, noticedBytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stop := filepath.Join(t.TempDir(), "stop")
	var list []*running
	for i := range 3 {
		list = append(list, start(t, fmt.Sprint("reread.", i), dir, stop),
			start(t, fmt.Sprint("rewrite.", i), filepath.Join(other, "bucket"), stop))
	}
	for range noticeRounds {
		time.Sleep(betweenRounds / 2)
		begin := time.Now()
		s.Kill()
		s.Start()
		if took := time.Since(begin); took > restartLimit {
			t.Errorf("the next server serves after %v", took)
		}
	}
	s.finish(stop, list...)
}
