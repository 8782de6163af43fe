package survive

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/fusemount/holder"
	"ogw/integration/testenv"
)

// beside is a program's file behind the one that ends it, whose text is a folder.
const beside = ".beside"

// twoMounts writes the same places through two mounts, the newer bytes through
// the one that was made first, and at the end looks at what is there.
func twoMounts(w *world) error {
	other, err := os.ReadFile(w.stop + beside)
	if err != nil {
		return err
	}
	first, err := os.OpenFile("f", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	second, err := os.OpenFile(filepath.Join(string(other), "f"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	const blocks, size = 300, 1000
	block := make([]byte, size)
	for i := range int64(blocks) {
		for k, f := range []*os.File{second, first} {
			block[0], block[size-1] = byte(k), byte(i)
			if _, err := f.WriteAt(block, i*size); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(w.stop+made, nil, 0o600); err != nil {
		return err
	}
	if err := w.run(func(int) error { return nil }); err != nil {
		return err
	}
	for _, f := range []*os.File{first, second} {
		old := 0
		for i := range int64(blocks) {
			if _, err := f.ReadAt(block, i*size); err != nil {
				return err
			}
			if block[0] != 1 || block[size-1] != byte(i) {
				old++
			}
		}
		if old > 0 {
			return fmt.Errorf("%s: %d of %d blocks are older ones", f.Name(), old, blocks)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// What was written through several superblocks is there as it was written last.
func TestSuperblocks(t *testing.T) {
	s := watch(t, testLimit)
	dir := s.bucket(s.mount("survive"))
	second := s.mount("survive,attr_timeout=2")
	stop := filepath.Join(t.TempDir(), "stop")
	folder := filepath.Join(second, "bucket/two")
	if err := os.WriteFile(stop+beside, []byte(folder), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "two", dir, stop)
	s.made(stop)
	s.Kill()
	s.Start()
	s.finish(stop, r)
}

// made waits until a program did its work.
func (s *watched) made(stop string) {
	s.T.Helper()
	s.await("the program", stop+made)
}

// finish ends programs.
func (s *watched) finish(stop string, list ...*running) {
	t := s.T.(*testing.T)
	t.Helper()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		r.end(t)
	}
}

// A mount of one directory survives also as the first, and under another name.
func TestSubtreeFirst(t *testing.T) {
	s := watch(t, testLimit)
	plain := testenv.TempDir(t)
	change := func(fn func() error) {
		t.Helper()
		s.OGW("mount", plain)
		err := fn()
		s.OGW("umount", plain)
		if err != nil {
			t.Fatal(err)
		}
	}
	change(func() error { return os.MkdirAll(filepath.Join(plain, "bucket/sub"), 0o755) })
	top := s.mount("survive,subtree=bucket/sub")
	stop := filepath.Join(t.TempDir(), "stop")
	list := []*running{start(t, "unlinked", top, stop), start(t, "append", top, stop)}
	for i := range 4 {
		time.Sleep(betweenRounds / 4)
		if i == 1 {
			change(func() error {
				return os.Rename(filepath.Join(plain, "bucket/sub"), filepath.Join(plain, "bucket/moved"))
			})
		}
		if i%2 == 0 {
			s.Kill()
		} else {
			s.Stop()
		}
		s.Start()
	}
	s.finish(stop, list...)
	if out := s.OGW("status"); !strings.Contains(out, top) {
		t.Errorf("status does not list it:\n%s", out)
	}
}

// setWriteback changes what the holder knows of the mounts: with other options,
// the kernel would have been answered in another way.
func (s *watched) setWriteback(on bool) {
	s.T.Helper()
	c, err := holder.Dial(s.socket())
	if err != nil {
		s.T.Fatal(err)
	}
	items, err := c.List()
	if err != nil || len(items) == 0 {
		s.T.Fatal(items, err)
	}
	for _, i := range items {
		var m map[string]any
		if err := json.Unmarshal(i.Meta, &m); err != nil {
			s.T.Fatal(err)
		}
		m["writeback"] = on
		if i.Meta, err = json.Marshal(m); err != nil {
			s.T.Fatal(err)
		}
		if err := c.Put(i); err != nil {
			s.T.Fatal(err)
		}
		i.Close()
	}
	if err := c.Close(); err != nil {
		s.T.Fatal(err)
	}
}

// A server that cannot serve a mount says so for each of its places, and leaves
// files without a name, locks and writes to one that can.
func TestRefused(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive,writeback")
	dir := s.bucket(top)
	bound := testenv.TempDir(t)
	if err := unix.Mount(dir, bound, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(bound, unix.MNT_DETACH) })
	stop := filepath.Join(t.TempDir(), "stop")
	list := []*running{start(t, "unlinked", dir, stop), start(t, "locks", dir, stop), start(t, "append", dir, stop)}
	time.Sleep(betweenRounds)
	s.Kill()
	s.setWriteback(false)
	s.Start()
	for _, at := range []string{top, bound} {
		if out, err := s.TryOGW("mount", at); err == nil || !strings.Contains(out, "is not served here") {
			t.Errorf("mount at %s: %v, %s", at, err, out)
		}
		if !strings.Contains(s.Log(), "dir="+at) {
			t.Errorf("the log does not tell of %s:\n%s", at, s.Log())
		}
	}
	time.Sleep(betweenRounds) // time for a collector
	s.Stop()
	s.setWriteback(true)
	s.Start()
	if out := s.OGW("status"); !strings.Contains(out, top) || strings.Contains(out, bound) {
		t.Errorf("status does not list the mount, and no bind mount:\n%s", out)
	}
	s.finish(stop, list...)
}

// One that is refused ends after the time that it may be abandoned for, or when
// somebody says so.
func TestRefusedEnds(t *testing.T) {
	s := watch(t, testLimit)
	short, long := s.mount("survive,writeback,abandon=1s"), s.mount("survive,writeback,abandon=1h")
	s.Stop()
	s.setWriteback(false)
	s.Start()
	testenv.Eventually(t, "the mount to end", func() error {
		if _, err := os.ReadDir(short); err == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	if !strings.Contains(s.Log(), "given up") {
		t.Errorf("the log says nothing:\n%s", s.Log())
	}
	read := make(chan error, 1)
	go func() { _, err := os.ReadDir(long); read <- err }()
	select {
	case err := <-read:
		t.Errorf("it answers, or is gone: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	s.OGW("umount", "--lazy", long)
	if err := <-read; err == nil {
		t.Error("read after the end")
	}
	s.Stop()
	s.holderEnds()
}

// What is out of the tree while programs have it survives as well, and a stop
// does not take long.
func TestOutOfTree(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	dir := s.bucket(top)
	stop := filepath.Join(t.TempDir(), "stop")
	list := []*running{start(t, "unlinked", dir, stop), start(t, "append", dir, stop), start(t, "locks", dir, stop)}
	s.OGW("umount", "--lazy", top)
	for i := range 6 {
		time.Sleep(betweenRounds / 4)
		if i%3 == 2 {
			s.Kill()
		} else {
			begin := time.Now()
			s.Stop()
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("the stop took %v", took)
			}
		}
		s.Start()
	}
	s.finish(stop, list...)
	s.Stop()
	s.holderEnds()
}

// A holder that dies beside a server is replaced at once.
func TestHolderDies(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	dir := s.bucket(top)
	stop := filepath.Join(t.TempDir(), "stop")
	list := []*running{start(t, "unlinked", dir, stop), start(t, "append", dir, stop)}
	for i := range 3 {
		old := s.holder()
		if err := unix.Kill(old, unix.SIGKILL); old <= 0 || err != nil {
			t.Fatal(old, err)
		}
		if i < 2 {
			testenv.Eventually(t, "another holder", func() error {
				if now := s.holder(); now == old || strings.Count(s.Log(), "mounts are held again") != i+1 {
					return fmt.Errorf("it is %d", now)
				}
				return nil
			})
		}
		if i == 0 {
			s.Kill()
		} else {
			s.Stop() // the last time without a holder
		}
		s.Start()
	}
	s.finish(stop, list...)
}

// When both were killed, the next server makes the mount again.
func TestBothDie(t *testing.T) {
	s := watch(t, testLimit)
	top := s.mount("survive")
	s.bucket(top)
	pid := s.holder()
	if err := s.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); pid <= 0 || err != nil {
		t.Fatal(pid, err)
	}
	s.Kill()
	s.Start()
	if _, err := os.Stat(filepath.Join(top, "bucket")); err != nil {
		t.Errorf("%v\n%s", err, s.Log())
	}
	s.Stop()
	s.Start()
	if _, err := os.Stat(filepath.Join(top, "bucket")); err != nil {
		t.Errorf("%v\n%s", err, s.Log())
	}
}

// removed writes a large file without a name, and ends when told.
func removed(w *world) error {
	f, err := os.OpenFile("f", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := os.Remove("f"); err != nil {
		return err
	}
	b := make([]byte, removedBytes)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.WriteFile(w.stop+made, nil, 0o600); err != nil {
		return err
	}
	if err := w.run(func(int) error { return nil }); err != nil {
		return err
	}
	return f.Close()
}

const removedBytes = 24 << 20

// stored is the space that blobs take in files of their own, as the file's do: what
// the engine sets aside for others comes at its own time.
func (s *watched) stored() int64 { return testenv.DiskBytes(filepath.Join(s.Data, "blobs")) }

// The space of a removed file comes back when the program that has it ends, also
// behind a take-over with a mount whose kernel does not know the file.
func TestSpaceOfRemoved(t *testing.T) {
	s := watch(t, testLimit)
	dir := s.bucket(s.mount("survive"))
	s.mount("survive,attr_timeout=2")
	before := s.stored()
	stop := filepath.Join(t.TempDir(), "stop")
	r := start(t, "removed", dir, stop)
	s.made(stop)
	s.Kill()
	s.Start()
	if now := s.stored(); now < before+removedBytes {
		t.Errorf("%d bytes are stored, before it were %d", now, before)
	}
	s.finish(stop, r)
	testenv.Eventually(t, "its space", func() error {
		if now := s.stored(); now > before+removedBytes/2 {
			return fmt.Errorf("%d bytes are stored, before it were %d", now, before)
		}
		return nil
	})
}
