package integration

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

const (
	// backupFiles is how many names each writer uses, backupBytes how much there
	// is besides what the writers write.
	backupFiles = 20
	backupBytes = 128 << 20
	// maxWriterWait is what a backup may make a writer wait.
	maxWriterWait = 100 * time.Millisecond
)

// backupWriter changes files of its own through one door: each of its steps
// is one change that is there whole or not at all. What its files are after so
// many steps is known.
type backupWriter struct {
	name    string
	replace func(path, body string) error
	remove  func(path string) error
	prepare func(path, body string) (replace func() error) // nil: replace is all

	mu         sync.Mutex
	begun, end []time.Time // of each step
	longest    time.Duration
}

func (w *backupWriter) path(file int) string { return fmt.Sprintf("live/%s-f%02d", w.name, file) }

// step says what the ith step does; "" removes the file. Every round of the
// files writes all, and the next one removes half of them.
func (w *backupWriter) step(i int) (file int, body string) {
	file = i % backupFiles
	if i/backupFiles%2 == 1 && file%2 == 1 {
		return file, ""
	}
	body = fmt.Sprintf("%s %d;", w.name, i)
	return file, strings.Repeat(body, []int{1, 100, 3000, 40_000}[i%4])
}

// state is what the files are after n steps.
func (w *backupWriter) state(n int) map[string]string {
	files := map[string]string{}
	for i := max(0, n-2*backupFiles); i < n; i++ {
		file, body := w.step(i)
		if files[w.path(file)] = body; body == "" {
			delete(files, w.path(file))
		}
	}
	return files
}

func (w *backupWriter) run(t *testing.T, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		file, body := w.step(i)
		act := func() error { return w.replace(w.path(file), body) }
		if body == "" {
			act = func() error { return w.remove(w.path(file)) }
		} else if w.prepare != nil {
			act = w.prepare(w.path(file), body)
		}
		begun := time.Now()
		err := act()
		end := time.Now()
		if err != nil {
			t.Errorf("%s, step %d: %v", w.name, i, err)
			return
		}
		w.mu.Lock()
		w.begun, w.end = append(w.begun, begun), append(w.end, end)
		w.longest = max(w.longest, end.Sub(begun))
		w.mu.Unlock()
	}
}

// steps returns after how many steps the files were what got is, -1 if never.
func (w *backupWriter) steps(got map[string]string) int {
	for n := len(w.begun); n >= 0; n-- {
		if maps.Equal(got, w.state(n)) {
			return n
		}
	}
	return -1
}

// posixWriter replaces files by a rename.
func posixWriter(name string, d doors.Posix) *backupWriter {
	w := &backupWriter{name: name, remove: d.Remove}
	n := 0
	w.prepare = func(path, body string) func() error {
		n++
		temp := fmt.Sprintf("live/tmp-%s-%d", name, n%4)
		err := d.Write(temp, body)
		return func() error { return errors.Join(err, d.Rename(temp, path)) }
	}
	return w
}

func objectWriter(name string, d doors.Object) *backupWriter {
	return &backupWriter{name: name, replace: d.Write, remove: d.Delete}
}

// backupSummary is what ogw backup --json prints.
type backupSummary struct {
	ID       string `json:"id"`
	Settled  bool   `json:"settled"`
	Bytes    int64  `json:"bytes"`
	Moved    int64  `json:"moved_bytes"`
	ReadBack int64  `json:"read_back_bytes"`
	Resumed  int64  `json:"resumed_bytes"`
	Wait     int64  `json:"writer_wait_ns"`
}

func backupNow(t *testing.T, s *server, args ...string) (b backupSummary) {
	t.Helper()
	begun := time.Now()
	out := s.OGW(append([]string{"backup", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(begun)
	t.Logf("%s: %.1f MiB, moved %.1f MiB in %v (%.0f MiB/s), read back %.2f MiB, resumed %.1f MiB, writers waited %v, settled %v", b.ID, mib(b.Bytes),
		mib(b.Moved), took.Round(time.Millisecond), mib(b.Moved)/took.Seconds(), mib(b.ReadBack), mib(b.Resumed), time.Duration(b.Wait), b.Settled)
	if time.Duration(b.Wait) > maxWriterWait {
		t.Errorf("writers waited %v for the instant", time.Duration(b.Wait))
	}
	if !b.Settled {
		t.Error("no instant was found without a write in a buffer")
	}
	return b
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// Under the load of all doors, a backup is killed and made again, into a folder
// and into a bucket of another server. Each is restored as the store was at one
// instant; the next one moves what changed.
func TestBackupLive(t *testing.T) {
	s := newServer(t, options{})
	target := newServer(t, options{})
	target.makeBucket("backups")
	keyFile := filepath.Join(s.Dir, "backup.key")
	key := make([]byte, 32)
	rand.Read(key)
	if err := os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rest := doors.NewREST(s.REST)
	piece := make([]byte, 1<<20)
	for i := range backupBytes / len(piece) {
		rand.Read(piece)
		if err := rest.Write(fmt.Sprintf("still/%d", i), string(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := rest.Write("live/begin", ""); err != nil {
		t.Fatal(err)
	}
	mount := doors.NewMount(s.Mount())
	nfs, err := doors.DialNFS(s.NFS, "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nfs.Close)
	writers := []*backupWriter{
		objectWriter("s3", doors.NewS3(s.S3, s.KeyID, s.Secret)), objectWriter("rest", rest), posixWriter("fuse", mount), posixWriter("nfs", nfs),
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() { w.run(t, stop) })
	}
	folder := filepath.Join(s.Dir, "backups")
	bucket := []string{"s3://backups/live", "--endpoint", "http://" + target.S3, "--key-file", keyFile}
	s.KeyID, target.KeyID = target.KeyID, s.KeyID // the commands' credentials are those of the target
	s.Secret, target.Secret = target.Secret, s.Secret
	killBackup(t, s, folder, folder, "--key-file", keyFile)
	first := backupNow(t, s, folder, "--key-file", keyFile)
	if first.Resumed == 0 || first.Moved > first.Bytes-first.Resumed/2 {
		t.Errorf("after a kill %d bytes are there and %d of %d are moved", first.Resumed, first.Moved, first.Bytes)
	}
	killBackup(t, s, filepath.Join(target.Mount(), "backups", "live"), bucket...)
	inBucket := backupNow(t, s, bucket...)
	if inBucket.Resumed == 0 {
		t.Error("nothing of the killed backup is in the bucket")
	}
	second := backupNow(t, s, folder, "--key-file", keyFile)
	close(stop)
	wg.Wait()
	for _, w := range writers {
		t.Logf("%s: %d steps, the longest %v", w.name, len(w.begun), w.longest)
	}
	places := map[string]backupSummary{folder: second, folder + " " + first.ID: first, bucket[0]: inBucket}
	t.Run("restored", func(t *testing.T) { // returns when all are
		for place, b := range places {
			source := []string{folder, b.ID, "--key-file", keyFile}
			if place == bucket[0] {
				source = append([]string{bucket[0], b.ID}, bucket[1:]...)
			}
			t.Run(b.ID, func(t *testing.T) {
				t.Parallel()
				wantInstant(t, s.with(t), source, writers)
			})
		}
	})

	// A change of 1 %.
	backupNow(t, s, folder, "--key-file", keyFile)
	for i := range backupBytes / 100 / len(piece) {
		rand.Read(piece)
		if err := rest.Write(fmt.Sprintf("still/%d", i*7), string(piece)); err != nil {
			t.Fatal(err)
		}
	}
	next := backupNow(t, s, folder, "--key-file", keyFile)
	if next.Moved+next.ReadBack > next.Bytes/20 {
		t.Errorf("after a change of 1 %% of %d bytes %d were moved and %d read back", next.Bytes, next.Moved, next.ReadBack)
	}
	s.OGW("backup", "remove", folder, "--keep", "1")
	s.OGW("backup", "verify", folder)
}

// killedBytes are in the packs of a backup when it is killed: two of sixteen MiB.
const killedBytes = 32 << 20

// killBackup ends a backup with SIGKILL in the middle of its blobs. repository is
// the folder in which what it moves is to be seen.
func killBackup(t *testing.T, s *server, repository string, args ...string) {
	t.Helper()
	cmd := exec.Command(s.Binary, append([]string{"backup", "--config", s.Config, "--limit", "60MiB"}, args...)...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s.KeyID, "AWS_SECRET_ACCESS_KEY="+s.Secret, "AWS_REGION=us-east-1")
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "packs of a backup", func() error {
		if n := testenv.DiskBytes(filepath.Join(repository, "packs")); n < killedBytes {
			return fmt.Errorf("%d bytes", n)
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the backup ended before it was killed: %v %s", err, &out)
	}
}

// wantInstant restores a snapshot, checks the store, and finds the moment that
// it is of: one that lies behind what each writer had done, and before the end of
// what it had not.
func wantInstant(t *testing.T, s *server, source []string, writers []*backupWriter) {
	t.Helper()
	dir := filepath.Join(testenv.TempDir(t), "restored")
	s.Command(s.Binary, append(append([]string{"restore"}, source...), "--dir", dir)...)
	if out := s.Command(s.Binary, "check", "--data", "--dir", dir); !strings.Contains(out, "clean") {
		t.Errorf("check of %v: %s", source, out)
	}
	r := newServer(t, options{Data: dir})
	defer r.Stop()
	names, err := doors.NewMount(r.Mount()).List("live")
	if err != nil {
		t.Fatal(err)
	}
	rest := doors.NewREST(r.REST)
	var after, before time.Time // the instant lies between
	for _, w := range writers {
		got := map[string]string{}
		for _, name := range names {
			if strings.HasPrefix(name, w.name+"-") {
				if got["live/"+name], err = rest.Read("live/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		n := w.steps(got)
		if n < 0 {
			t.Errorf("%v: the %d files of %s are what they never were", source, len(got), w.name)
			continue
		}
		if n > 0 && w.begun[n-1].After(after) {
			after = w.begun[n-1]
		}
		if n < len(w.end) && (before.IsZero() || w.end[n].Before(before)) {
			before = w.end[n]
		}
	}
	if !before.IsZero() && after.After(before) {
		t.Errorf("%v: it holds a change that began %v after the end of one that it does not hold", source, after.Sub(before))
	}
	for i := range 3 {
		was, err := doors.NewREST(s.REST).Read(fmt.Sprintf("still/%d", i))
		got, e := rest.Read(fmt.Sprintf("still/%d", i))
		if err != nil || e != nil || got != was {
			t.Errorf("%v: still/%d: %v %v, the same %v", source, i, err, e, got == was)
		}
	}
}
