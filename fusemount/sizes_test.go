package fusemount

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// What another door cuts off from a file, or adds to it, is seen by the next
// read through a descriptor that was open before, without a stat: also where
// the kernel reads ahead in several requests, of which those behind the end
// may be answered first.
func TestSizeOfOpenFile(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 6))
		name := filepath.Join(dir, "f")
		model := bytes.Repeat([]byte("0123456789abcde"), 3<<20/15)
		must(t, os.WriteFile(name, model, 0o644))
		fd, err := unix.Open(name, unix.O_RDWR, 0)
		must(t, err)
		defer unix.Close(fd)
		a, err := fs.Resolve(bg, vfs.Root, "bucket/f", true)
		must(t, err)
		other, err := fs.Open(bg, vfs.Root, a.Ino, vfs.OpenRead|vfs.OpenWrite)
		must(t, err)
		defer other.Close(bg)
		rounds := 200
		if testing.Short() {
			rounds = 30
		}
		for round := range rounds {
			was := int64(len(model))
			size := 1 + r.IntN(3<<20)
			if size > len(model) {
				_, err := other.WriteAt(bg, []byte{'x'}, int64(size-1))
				must(t, err)
				model = append(model, make([]byte, size-len(model))...)
				model[size-1] = 'x'
			} else {
				n := int64(size)
				_, err := fs.SetAttr(bg, vfs.Root, a.Ino, vfs.SetAttr{Size: &n})
				must(t, err)
				model = model[:size]
			}
			if round%2 == 0 { // leaves a page that splits the read-ahead
				off := max(0, size-1-r.IntN(5000))
				n, err := unix.Pwrite(fd, []byte{byte(round)}, int64(off))
				if n != 1 || err != nil {
					t.Fatalf("round %d: write: %d, %v", round, n, err)
				}
				model[off] = byte(round)
			}
			// Up to the end that the kernel knew: a read beyond it would ask.
			off := r.IntN(size)
			buf := make([]byte, max(1, was-int64(off)))
			n, err := unix.Pread(fd, buf, int64(off))
			must(t, err)
			if want := model[off:min(size, off+len(buf))]; !bytes.Equal(buf[:n], want) {
				t.Fatalf("round %d: read %d bytes at %d, want %d; the size is %d, it was %d", round, n, off, len(want), size, was)
			}
		}
	})
}

// Several doors change sizes of files that are open, while the mount is used
// and goes away: nobody waits for the kernel for good.
func TestSizesWhileUnmounting(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		fs := openFS(t)
		dir := t.TempDir()
		rounds := 10
		if testing.Short() {
			rounds = 3
		}
		for round := range rounds {
			s, err := Mount(fs, dir, Options{Transport: over, AllowOther: true, Logger: testLogger(t)})
			must(t, err)
			if round == 0 {
				must(t, os.Mkdir(filepath.Join(dir, "bucket"), 0o755))
			}
			var wg sync.WaitGroup
			for w := range 2 {
				name := fmt.Sprintf("f%d", w)
				f, err := os.Create(filepath.Join(dir, "bucket", name))
				must(t, err)
				a, err := fs.Resolve(bg, vfs.Root, "bucket/"+name, true)
				must(t, err)
				wg.Go(func() {
					for n := range int64(60) {
						size := n * 1000 % 7001
						if _, err := fs.SetAttr(bg, vfs.Root, a.Ino, vfs.SetAttr{Size: &size}); err != nil {
							t.Errorf("truncate: %v", err)
						}
					}
				})
				wg.Go(func() {
					for n := range int64(60) {
						_, _ = f.WriteAt([]byte("text"), n*100) // fails when the mount is gone
					}
					f.Close()
				})
			}
			must(t, s.Detach())
			inTime(t, fmt.Sprint("the changes of round ", round), wg.Wait)
			inTime(t, fmt.Sprint("the end of mount ", round), s.Wait)
		}
	})
}

// servedBy is the thread that serves what the main one asks for: package
// variables are made by the main one.
var servedBy = func() (tid int) {
	onOwnThread(func() { tid = unix.Gettid() })
	return tid
}()

// The main thread keeps its descriptors: they are those that /proc shows.
func TestOwnThreadIsNotTheMainOne(t *testing.T) {
	if servedBy == 0 || servedBy == os.Getpid() {
		t.Errorf("served by thread %d of process %d", servedBy, os.Getpid())
	}
}
