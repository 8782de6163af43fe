package fusemount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/vfs"
)

// As long as gateways tell each other what they change, the kernel keeps attributes: to read what it has in
// its pages it asks nobody.
func TestBesideKeeps(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for name, two := range map[string]func(testing.TB, mem.Options, Options) (a, b *gateway){"told": twoTelling, "not told": twoGateways} {
			t.Run(name, func(t *testing.T) {
				var asked atomic.Int64
				a, b := two(t, mem.Options{}, Options{Transport: over, Observe: func(operation string, _ time.Duration, _ syscall.Errno) {
					if operation == "getattr" {
						asked.Add(1)
					}
				}})
				write(t, a.path("file"), strings.Repeat("x", 10000))
				f := opened(t, b.path("file"), os.O_RDONLY)
				wantOpen(t, f, strings.Repeat("x", 10000))
				const rounds = 1000
				for tries := 10; ; tries-- { // a lease may have ended on a busy machine
					before, begin := asked.Load(), time.Now()
					for i := range rounds {
						_, err := f.ReadAt(make([]byte, 100), int64(i%90*100))
						must(t, err)
					}
					n, each := asked.Load()-before, int64(time.Since(begin)/(200*time.Millisecond))+2 // what may be kept ends with a lease
					if name == "told" && n <= each || name != "told" && n >= rounds {
						break
					}
					if tries == 0 {
						t.Fatalf("%d requests for attributes, %d reads in %v", n, rounds, time.Since(begin))
					}
				}
			})
		}
	})
}

// What the kernel keeps is gone before another gateway's change is acknowledged, or that of another door, whatever
// else goes on.
func TestBesideRecalled(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for name, o := range map[string]mem.Options{"mem": {}, "worst": mem.Distributed(1)} {
			t.Run(name, func(t *testing.T) {
				a, b := twoTelling(t, o, Options{Transport: over})
				write(t, a.path("file"), "begin")
				write(t, a.path("other"), "other")
				f := opened(t, b.path("file"), os.O_RDONLY)
				stop := make(chan struct{})
				var storm sync.WaitGroup
				defer storm.Wait()
				defer close(stop)
				for i := range 3 { // who has the kernel keep attributes, and look names up
					storm.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							_, e1 := f.Stat()
							_, e2 := f.ReadAt(make([]byte, 3), 0)
							if errors.Is(e2, io.EOF) { // it is about to be written anew
								e2 = nil
							}
							switch i {
							case 1:
								_, e2 = os.Stat(b.path("file"))
							case 2:
								_, e2 = os.ReadDir(b.dir)
							}
							if err := errors.Join(e1, e2); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				object := vfs.ObjectName{Bucket: "bucket", Key: "file"}
				last := time.Unix(1e9, 0)
				for i := range 60 {
					text := fmt.Sprint("text ", i%7, strings.Repeat("y", i%3*5000))
					mode := os.FileMode(0o600 + i%8)
					switch i % 5 {
					case 0:
						write(t, a.path("file"), text)
						must(t, os.Chmod(a.path("file"), mode))
					case 1: // as large, and of the same time
						text = strings.ToUpper(text)
						write(t, a.path("file"), text)
						must(t, errors.Join(os.Chtimes(a.path("file"), last, last), os.Chmod(a.path("file"), mode)))
					case 2:
						g := opened(t, a.path("file"), os.O_RDWR)
						_, err := g.WriteAt([]byte(text), 0)
						must(t, errors.Join(err, g.Truncate(int64(len(text))), g.Chmod(mode), g.Close()))
					default: // through the other gateway's doors, and its own
						by := a.fs
						if i%5 == 4 {
							by = b.fs
						}
						_, err := by.PutObject(bg, object, strings.NewReader(text), vfs.PutOptions{Size: int64(len(text)), Owner: vfs.Root})
						must(t, err)
						info, err := by.Lookup(bg, vfs.Root, mustIno(t, by), "file")
						must(t, err)
						m := uint32(mode)
						_, err = by.SetAttr(bg, vfs.Root, info.Ino, vfs.SetAttr{Mode: &m})
						must(t, err)
					}
					wantOpen(t, f, text)
					info, err := f.Stat()
					if must(t, err); info.Mode().Perm() != mode {
						t.Fatalf("round %d: mode %o, want %o", i, info.Mode().Perm(), mode)
					}
					if info, err = os.Stat(b.path("file")); err != nil || info.Mode().Perm() != mode || info.Size() != int64(len(text)) {
						t.Fatalf("round %d: %v, %v", i, info, err)
					}
				}
			})
		}
	})
}

// mustIno returns the bucket of all.
func mustIno(t testing.TB, fs *vfs.FS) vfs.Ino {
	t.Helper()
	a, err := fs.Lookup(bg, vfs.Root, vfs.RootIno, "bucket")
	must(t, err)
	return a.Ino
}
