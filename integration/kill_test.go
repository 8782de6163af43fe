package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// acked is one worker's operations in order. Each changes a name of its own, so
// that every one that was answered can be looked for.
type acked struct {
	path string // below the root
	gone bool   // the operation removed it
	// unknown: it was not answered, and was done or not.
	unknown bool
}

// TestKillTakesNothingAsync kills the server under load with durability async:
// the end of the process takes nothing that was answered, whatever was asked
// of the disk.
func TestKillTakesNothingAsync(t *testing.T) {
	rounds, seed := testenv.Count(t, "OGW_KILL_ROUNDS", 5), uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := newServer(t, options{Cluster: "durability = \"async\""})
	s.makeBucket("crash")
	total, missing := 0, 0
	for round := range rounds {
		dir := filepath.Join(s.Dir, fmt.Sprintf("mnt%d", round))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.OGW("mount", dir)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		logs := make([][]acked, 8)
		var answered atomic.Int64
		for w := range logs {
			name := fmt.Sprintf("crash/%d-%d", round, w)
			work := s.putAsync
			switch w % 4 {
			case 1:
				work = s.restAsync
			case 2, 3:
				work = func(name string, i int) (acked, error) { return fuseAsync(dir, name, i) }
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					done, err := work(name, i)
					done.unknown = err != nil // the server was killed
					logs[w] = append(logs[w], done)
					if err != nil {
						return
					}
					answered.Add(1)
				}
			}()
		}
		loaded(t, 200+rnd.IntN(800), func() int { return int(answered.Load()) })
		s.Kill()
		close(stop)
		wg.Wait()
		s.Try("umount", "-l", dir)
		s.Start()
		for w, log := range logs {
			n := s.lost(t, log)
			total, missing = total+len(log), missing+n
			if n > 0 {
				t.Errorf("round %d, worker %d: %d of %d acknowledged operations are lost", round, w, n, len(log))
			}
		}
	}
	t.Logf("%d of %d acknowledged operations are lost in %d rounds", missing, total, rounds)
	checkClean(t, s)
}

// lost counts what is not as the log says.
func (s *server) lost(t *testing.T, log []acked) (n int) {
	last := map[string]bool{}
	for _, op := range log {
		last[op.path] = op.gone
		if op.unknown {
			delete(last, op.path)
		}
	}
	for path, gone := range last {
		resp, err := http.Head("http://" + s.REST + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (resp.StatusCode == http.StatusNotFound) != gone {
			n++
		}
	}
	return n
}

func (s *server) putAsync(name string, i int) (acked, error) {
	path := fmt.Sprintf("%s/%d", name, i)
	_, key, _ := strings.Cut(path, "/")
	_, err := s.s3Door().PutObject(context.Background(), &s3.PutObjectInput{Bucket: aws.String("crash"), Key: &key,
		Body: strings.NewReader(strings.Repeat("s", 4096))}, func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	return acked{path: path}, err
}

// restAsync writes names and takes every other one away again.
func (s *server) restAsync(name string, i int) (acked, error) {
	path := fmt.Sprintf("%s/%d", name, i/3)
	rest := doors.NewREST(s.REST)
	if i%3 == 2 && i/3%2 == 0 {
		return acked{path: path, gone: true}, rest.Delete(path)
	}
	return acked{path: path}, rest.Write(path, strings.Repeat("r", 100))
}

// fuseAsync does what has no data: what a write of a mount waits for is another
// promise.
func fuseAsync(dir, name string, i int) (acked, error) {
	path := fmt.Sprintf("%s-%d", name, i/2)
	full := filepath.Join(dir, path)
	if i%2 == 1 {
		if i/2%2 == 0 {
			return acked{path: path}, os.Chmod(full, 0o600)
		}
		return acked{path: path, gone: true}, os.Remove(full)
	}
	f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return acked{path: path}, err
	}
	return acked{path: path}, f.Close()
}
