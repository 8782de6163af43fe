package integration

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// restartLimit is how long a restart after a crash may take.
const restartLimit = 2 * time.Second

// ledger holds what was acknowledged as durable: path to generation. A path
// whose last write was not acknowledged may hold either generation.
type ledger struct {
	mu    sync.Mutex
	acked map[string]int
	tried map[string]int
	acks  int // writes, some of one path
}

func (l *ledger) try(path string, gen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[path] = gen
}

func (l *ledger) ack(path string, gen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[path] = gen
	l.acks++
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// loaded waits until a server has answered so many more operations, of which
// count shows.
func loaded(t *testing.T, operations int, count func() int) {
	t.Helper()
	want := count() + operations
	testenv.Eventually(t, "operations", func() error {
		if n := count(); n < want {
			return fmt.Errorf("%d of %d", n, want)
		}
		return nil
	})
}

// bodyOf is what generation gen of path holds: recognisable, of varied size,
// from inline to several blocks.
func bodyOf(path string, gen int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", path, gen)
	sum := h.Sum64()
	sizes := [...]int{0, 40, 5000, 70_000, 300_000, 2_000_000}
	n := sizes[sum%uint64(len(sizes))]
	head := fmt.Sprintf("%s generation %d\n", path, gen)
	return head + strings.Repeat(fmt.Sprintf("%016x", sum), n/16)
}

// TestKill kills the server at random moments under load through every door,
// restarts it, and wants everything that was acknowledged as durable, whole.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rounds := testenv.Count(t, "OGW_KILL_ROUNDS", 2)
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := newServer(t, options{})
	s.makeBucket("crash")
	l := &ledger{acked: map[string]int{}, tried: map[string]int{}}
	for round := range rounds {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Add(3)
			go func() { defer wg.Done(); l.writeS3(s, round, w, stop) }()
			go func() { defer wg.Done(); l.writeREST(s, round, w, stop) }()
			go func() { defer wg.Done(); l.writeNFS(t, s, round, w, stop) }()
		}
		loaded(t, 50+rnd.IntN(200), l.count)
		s.Kill()
		close(stop)
		wg.Wait()
		if took := s.Start(); took > restartLimit {
			t.Errorf("round %d: restart took %v", round, took)
		}
		l.verify(t, s, round)
		checkClean(t, s)
	}
	t.Logf("%d writes were acknowledged in %d rounds", l.acks, rounds)
}

func (l *ledger) loop(prefix string, stop chan struct{}, write func(path, body string) error) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		path := fmt.Sprintf("%s/%d", prefix, i%40)
		l.try(path, i)
		if err := write(path, bodyOf(path, i)); err != nil {
			return // the server was killed
		}
		l.ack(path, i)
	}
}

func (l *ledger) writeS3(s *server, round, w int, stop chan struct{}) {
	c := s.s3Door()
	l.loop(fmt.Sprintf("s3/%d/%d", round, w), stop, func(p, body string) error {
		_, err := c.PutObject(context.Background(), &s3.PutObjectInput{
			Bucket: aws.String("crash"), Key: &p, Body: strings.NewReader(body)},
			func(o *s3.Options) { o.RetryMaxAttempts = 1 })
		return err
	})
}

func (l *ledger) writeREST(s *server, round, w int, stop chan struct{}) {
	rest := doors.NewREST(s.REST)
	l.loop(fmt.Sprintf("rest/%d/%d", round, w), stop, func(p, body string) error {
		return rest.Write("crash/"+p, body)
	})
}

// writeNFS writes new files; Close commits.
func (l *ledger) writeNFS(t *testing.T, s *server, round, w int, stop chan struct{}) {
	target := s.nfsDoor(t, "/crash")
	dir := fmt.Sprintf("nfs-%d-%d", round, w)
	if err := target.Mkdir(dir); err != nil {
		return
	}
	n := 0
	l.loop(dir, stop, func(p, body string) error {
		n++
		if n > 40 {
			return io.EOF // a name twice would be an overwrite in place, which is not atomic
		}
		f, err := target.OpenFile(p, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.Write([]byte(body)); err != nil {
			return err
		}
		return f.Close()
	})
}

// verify reads every acknowledged path over REST.
func (l *ledger) verify(t *testing.T, s *server, round int) {
	t.Helper()
	rest := doors.NewREST(s.REST)
	for path, gen := range l.acked {
		got, err := rest.Read("crash/" + path)
		if err == nil && got == bodyOf(path, gen) {
			continue
		}
		if tried := l.tried[path]; err == nil && tried != gen && got == bodyOf(path, tried) {
			l.acked[path] = tried // written, killed before the answer
			continue
		}
		t.Fatalf("round %d: %s: generation %d was acknowledged, got %d bytes %.60q, error %v",
			round, path, gen, len(got), got, err)
	}
}

// TestKillFUSE kills the server under writers that fsync through a mount of
// their own process.
func TestKillFUSE(t *testing.T) {
	s := newServer(t, options{})
	s.makeBucket("crash")
	dir := filepath.Join(testenv.TempDir(t), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.OGW("mount", dir)
	l := &ledger{acked: map[string]int{}, tried: map[string]int{}}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.loop(fmt.Sprintf("fuse-%d", w), stop, func(p, body string) error {
				return writeSynced(filepath.Join(dir, "crash", p), body)
			})
		}()
	}
	loaded(t, 50, l.count)
	s.Kill()
	close(stop)
	wg.Wait()
	s.Try("umount", "-l", dir)
	s.Start()
	l.verify(t, s, 0)
	checkClean(t, s)
	// What the crash left at the mount point must not be in the way.
	s.OGW("mount", dir)
	s.OGW("umount", dir)
}

// writeSynced replaces a file as careful programs do: a new file, fsync,
// rename, fsync of the folder.
func writeSynced(path, body string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(body); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
