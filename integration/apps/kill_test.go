package apps

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// killedErrnos are what a call may get during which the server is killed. The
// kernel says ECANCELED of what was on its way to a server by io_uring.
var killedErrnos = []syscall.Errno{syscall.ENOTCONN, syscall.ECONNABORTED, syscall.EIO, syscall.ECANCELED}

// TestKilledUnderLoad kills ogw while programs write: their calls fail soon
// and do not hang, and what fsync or close acknowledged is there afterwards.
func TestKilledUnderLoad(t *testing.T) {
	m := newMount(t)
	const (
		writers = 4
		rounds  = 3
	)
	body := func(w, n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d-%d ", w, n), 1+n*977%20000) }
	next := make([]int, writers) // the first file that was not acknowledged
	for round := range rounds {
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for w := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for ; ; next[w]++ {
					if errs[w] = os.WriteFile(file(m, w, next[w]), body(w, next[w]), 0o644); errs[w] != nil {
						return
					}
				}
			}()
		}
		time.Sleep(time.Second)
		m.kill()
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(testenv.CommandTimeout):
			t.Fatal("a call hangs after the server died")
		}
		for w, err := range errs {
			if !slices.ContainsFunc(killedErrnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) }) {
				t.Errorf("writer %d: %v, want one of %v", w, err, killedErrnos)
			}
		}
		if _, err := os.ReadFile(filepath.Join(m.dir, "none")); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("a call on the dead mount: %v, want ENOTCONN", err)
		}
		m.start()
		for w := range writers {
			for n := range next[w] {
				got, err := os.ReadFile(file(m, w, n))
				if err != nil || !bytes.Equal(got, body(w, n)) {
					t.Fatalf("round %d: %s was acknowledged: %d bytes, %v", round, file(m, w, n), len(got), err)
				}
			}
		}
		t.Logf("round %d: %v files acknowledged and there", round, next)
	}
}

func file(m *mount, w, n int) string { return filepath.Join(m.dir, fmt.Sprintf("w%d-%d", w, n)) }
