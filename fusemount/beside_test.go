package fusemount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/mem"
	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// borrowed is an engine that somebody else closes.
type borrowed struct{ cluster.KV }

func (borrowed) Close() error { return nil }

type borrowedBlobs struct{ cluster.Blobs }

func (borrowedBlobs) Close() error { return nil }

// gateway is one of several over one store, with a mount.
type gateway struct {
	fs  *vfs.FS
	dir string // the bucket of all, in the mount
}

// path names a file of the bucket.
func (g *gateway) path(name string) string { return filepath.Join(g.dir, name) }

// announcing is a KV that announces what it changes before it commits that.
type announcing struct {
	cluster.KV
	peers *coherence.Client
}

func (k announcing) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	var change *coherence.Change
	err := k.KV.Update(ctx, func(t cluster.Txn) (err error) {
		change.Done() // of the run before
		w := &announcedTxn{Txn: t}
		if change, err = nil, fn(w); err == nil && len(w.keys) > 0 {
			change, err = k.peers.Announce(ctx, w.keys...)
		}
		return err
	})
	change.Failed(errors.Is(err, cluster.ErrUnavailable))
	return err
}

type announcedTxn struct {
	cluster.Txn
	keys [][]byte
}

func (t *announcedTxn) Set(key, value []byte) error {
	t.keys = append(t.keys, bytes.Clone(key))
	return t.Txn.Set(key, value)
}

func (t *announcedTxn) Delete(key []byte) error {
	t.keys = append(t.keys, bytes.Clone(key))
	return t.Txn.Delete(key)
}

// openBeside opens a namespace over c beside others.
func openBeside(t testing.TB, c *cluster.Cluster) *vfs.FS {
	t.Helper()
	j, fs := joinBeside(t, c)
	t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), j.Close())) })
	return fs
}

// openTelling is openBeside for one of several that tell each other what they change.
func openTelling(t testing.TB, c *cluster.Cluster) *vfs.FS {
	t.Helper()
	peers, err := coherence.New(coherence.Options{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	telling := *c
	telling.KV, telling.Peers = announcing{c.KV, peers}, peers
	return openBeside(t, &telling)
}

// joinBeside is openBeside for who closes both, in this order: namespace and right.
func joinBeside(t testing.TB, c *cluster.Cluster) (*cluster.Cluster, *vfs.FS) {
	t.Helper()
	mine := *c
	mine.KV, mine.Blobs = borrowed{c.KV}, borrowedBlobs{c.Blobs}
	j, err := vfs.Join(bg, &mine, vfs.Gateway{Host: "test", PID: 1, Started: time.Now(), Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
	must(t, err)
	fs, err := vfs.Open(bg, j, vfs.Config{Logger: testLogger(t)})
	must(t, err)
	return j, fs
}

// twoGateways are two over one store, with the manners of an engine.
func twoGateways(t testing.TB, o mem.Options, opt Options) (a, b *gateway) {
	return twoOpened(t, o, opt, openBeside)
}

// twoTelling are two that tell each other what they change.
func twoTelling(t testing.TB, o mem.Options, opt Options) (a, b *gateway) {
	t.Helper()
	a, b = twoOpened(t, o, opt, openTelling)
	for begin := time.Now(); !a.told() || !b.told(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("two gateways do not tell each other what they change")
		}
	}
	return a, b
}

// told reports whether all others tell g what they change.
func (g *gateway) told() bool {
	now := g.fs.ReadMoment()
	a, err := g.fs.GetAttr(bg, vfs.RootIno)
	return err == nil && g.fs.KeepAttr(&a, now) > 0
}

func twoOpened(t testing.TB, o mem.Options, opt Options, open func(testing.TB, *cluster.Cluster) *vfs.FS) (a, b *gateway) {
	t.Helper()
	c := mem.New(o)
	t.Cleanup(func() { must(t, c.Close()) })
	mounted := func() *gateway {
		fs := open(t, c)
		dir, _ := mountFS(t, fs, opt)
		return &gateway{fs, filepath.Join(dir, "bucket")}
	}
	a, b = mounted(), mounted()
	must(t, os.Mkdir(a.dir, 0o755))
	return a, b
}

// onBeside runs a test over each transport, over an engine as etcd at its worst, and with gateways that tell
// each other what they change; not all of these with each.
func onBeside(t *testing.T, test func(t *testing.T, a, b *gateway)) {
	t.Helper()
	onTransports(t, func(t *testing.T, over Transport) {
		open := map[string]func(testing.TB, mem.Options, Options) (a, b *gateway){"not told": twoGateways, "told": twoTelling}
		best, worst := "not told", "told"
		if over == TransportRing {
			best, worst = worst, best
		}
		for name, o := range map[string]mem.Options{"mem, " + best: {}, "worst, " + worst: mem.Distributed(1)} {
			_, tells, _ := strings.Cut(name, ", ")
			t.Run(name, func(t *testing.T) {
				a, b := open[tells](t, o, Options{Transport: over})
				test(t, a, b)
			})
		}
	})
}

// wantText has a file read as text, through a new descriptor.
func wantText(t testing.TB, name, text string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if must(t, err); string(got) != text {
		t.Fatalf("%s holds %.60q, %d bytes, want %.60q, %d bytes", filepath.Base(name), got, len(got), text, len(text))
	}
}

// wantOpen has an open file read as text, and be as large.
func wantOpen(t testing.TB, f *os.File, text string) {
	t.Helper()
	got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if must(t, err); string(got) != text {
		t.Fatalf("what is open holds %.60q, %d bytes, want %.60q, %d bytes", got, len(got), text, len(text))
	}
	info, err := f.Stat()
	if must(t, err); info.Size() != int64(len(text)) {
		t.Fatalf("what is open has %d bytes, want %d", info.Size(), len(text))
	}
}

func opened(t testing.TB, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, flags, 0o644)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func appended(t testing.TB, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// What one mount closed, the other one's next open shows: attributes, bytes and size, also
// through what was open there before.
func TestBesideSeen(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		write(t, a.path("file"), "begin\n")
		text := "begin\n"
		fa, fb := opened(t, a.path("file"), os.O_RDONLY), opened(t, b.path("file"), os.O_RDONLY)
		for i := range 50 {
			from, to, other := a, b, fb
			if i%2 == 1 {
				from, to, other = b, a, fa
			}
			line := fmt.Sprint("line ", i, strings.Repeat("x", i*300), "\n")
			switch i % 10 {
			case 7:
				text = line
				write(t, from.path("file"), line)
			case 9:
				text = line
				_, err := from.fs.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "file"}, strings.NewReader(line), vfs.PutOptions{Size: int64(len(line)), Owner: vfs.Root})
				must(t, err)
			default:
				text += line
				appended(t, from.path("file"), line)
			}
			info, err := os.Stat(to.path("file"))
			if must(t, err); info.Size() != int64(len(text)) {
				t.Fatalf("round %d: %d bytes, want %d", i, info.Size(), len(text))
			}
			wantText(t, to.path("file"), text)
			wantOpen(t, other, text)
		}
	})
}

// Bytes that were replaced under the same size and time are seen by the next open.
func TestBesideSameTimes(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		write(t, a.path("file"), "0000")
		when := time.Unix(1_000_000_000, 0)
		must(t, os.Chtimes(a.path("file"), when, when))
		f := opened(t, b.path("file"), os.O_RDONLY) // which keeps the pages
		wantOpen(t, f, "0000")
		for i := range 20 {
			text := fmt.Sprintf("%04d", i)
			write(t, a.path("file"), text)
			must(t, os.Chtimes(a.path("file"), when, when))
			wantText(t, b.path("file"), text)
			wantOpen(t, f, text)
		}
	})
}

// Names that come and go at one gateway do so at the other one, absent ones and listings
// too.
func TestBesideNames(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		absent := func(g *gateway, name string) {
			t.Helper()
			if _, err := os.Lstat(g.path(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		listed := func(g *gateway, dir string, want ...string) {
			t.Helper()
			list, err := os.ReadDir(g.path(dir))
			must(t, err)
			var got []string
			for _, e := range list {
				got = append(got, e.Name())
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatalf("%q holds %q, want %q", dir, got, want)
			}
		}
		for i := range 12 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			absent(to, "dir")
			must(t, os.Mkdir(from.path("dir"), 0o755))
			listed(to, "dir")
			absent(to, "dir/file")
			write(t, from.path("dir/file"), "x")
			listed(to, "dir", "file")
			wantText(t, to.path("dir/file"), "x")
			must(t, os.Chmod(from.path("dir/file"), 0o600))
			if info, err := os.Stat(to.path("dir/file")); err != nil || info.Mode() != 0o600 {
				t.Fatal(info, err)
			}
			must(t, os.Rename(from.path("dir"), from.path("moved")))
			absent(to, "dir/file")
			wantText(t, to.path("moved/file"), "x")
			must(t, os.Symlink("moved/file", from.path("link")))
			wantText(t, to.path("link"), "x")
			write(t, from.path("new"), "y")
			must(t, os.Rename(from.path("new"), from.path("moved/file"))) // over it
			wantText(t, to.path("link"), "y")
			if err := os.Mkdir(to.path("moved"), 0o755); !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
			if err := os.Remove(to.path("moved")); !errors.Is(err, syscall.ENOTEMPTY) {
				t.Fatal(err)
			}
			must(t, errors.Join(os.Remove(to.path("link")), os.Remove(to.path("moved/file"))))
			listed(from, "moved")
			must(t, os.Remove(to.path("moved")))
			absent(from, "moved")
		}
	})
}

// What is open at one gateway and removed at the other one is read and written on.
func TestBesideUnlinked(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		must(t, os.Mkdir(a.path("dir"), 0o755))
		write(t, a.path("file"), "text")
		f := opened(t, a.path("file"), os.O_RDWR)
		dir := opened(t, a.path("dir"), os.O_RDONLY)
		must(t, errors.Join(os.Remove(b.path("file")), os.Remove(b.path("dir"))))
		wantOpen(t, f, "text")
		_, err := f.WriteAt([]byte("more of it"), 4)
		must(t, errors.Join(err, f.Sync()))
		wantOpen(t, f, "textmore of it")
		again := opened(t, fmt.Sprint("/proc/self/fd/", f.Fd()), os.O_RDONLY)
		wantOpen(t, again, "textmore of it")
		for _, x := range []*os.File{f, dir} {
			var st unix.Stat_t
			if err := unix.Fstat(int(x.Fd()), &st); err != nil || st.Nlink != 0 {
				t.Errorf("%d links, %v", st.Nlink, err)
			}
		}
		if names, err := dir.Readdirnames(-1); len(names) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q in what was removed, %v", names, err)
		}
		if _, err := os.Stat(a.path("file")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was removed: %v", err)
		}
	})
}

// What a kernel only remembers, another gateway removes: it is told that the name is gone.
func TestBesideForgotten(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		write(t, a.path("file"), "text")
		must(t, os.Mkdir(a.path("dir"), 0o755))
		write(t, a.path("dir/file"), "text")
		for _, name := range []string{"file", "dir/file"} {
			_, err := os.Stat(b.path(name))
			must(t, err)
		}
		must(t, errors.Join(os.Remove(a.path("file")), os.RemoveAll(a.path("dir"))))
		for left := 1; left > 0; { // until a look after the kernel has forgotten
			_, err := a.fs.Collect(bg)
			must(t, err)
			left = 0
			must(t, a.fs.Orphans(bg, func(vfs.Ino) error { left++; return nil }))
		}
	})
}

// Lines that several mounts append and sync are all there, each once and whole.
func TestBesideAppends(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		const writers, lines = 4, 25
		write(t, a.path("log"), "")
		var wg sync.WaitGroup
		for w := range writers {
			g := []*gateway{a, b}[w%2]
			f := opened(t, g.path("log"), os.O_APPEND|os.O_WRONLY)
			wg.Go(func() {
				for i := range lines {
					_, err := fmt.Fprintf(f, "writer %d line %d %s\n", w, i, strings.Repeat("x", 10*i))
					if err := errors.Join(err, f.Sync()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, g := range []*gateway{a, b} {
			got, err := os.ReadFile(g.path("log"))
			must(t, err)
			if n := bytes.Count(got, []byte("\n")); n != writers*lines {
				t.Errorf("%d lines, want %d", n, writers*lines)
			}
			for w := range writers {
				for i := range lines {
					if line := fmt.Sprintf("writer %d line %d %s\n", w, i, strings.Repeat("x", 10*i)); bytes.Count(got, []byte(line)) != 1 {
						t.Errorf("%.30q is there %d times", line, bytes.Count(got, []byte(line)))
					}
				}
			}
		}
	})
}

// A file that is cut or grows at one gateway does so for who has it open at the other one.
func TestBesideTruncated(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		text := strings.Repeat("0123456789", 2000)
		write(t, a.path("file"), text)
		ro, rw := opened(t, b.path("file"), os.O_RDONLY), opened(t, b.path("file"), os.O_RDWR)
		wantOpen(t, ro, text)
		for _, size := range []int{5000, 0, 12000, 4096, 100} {
			must(t, os.Truncate(a.path("file"), int64(size)))
			text = text[:min(size, len(text))] + strings.Repeat("\x00", max(0, size-len(text)))
			wantOpen(t, ro, text)
			wantOpen(t, rw, text)
		}
		must(t, rw.Truncate(3))
		wantText(t, a.path("file"), text[:3])
		end, err := rw.Seek(0, io.SeekEnd)
		if must(t, err); end != 3 {
			t.Errorf("the end is at %d", end)
		}
	})
}

// Ranges of one file that both write stay as each wrote them.
func TestBesideRanges(t *testing.T) {
	onBeside(t, func(t *testing.T, a, b *gateway) {
		const slot, slots, rounds = 1000, 6, 15
		write(t, a.path("file"), strings.Repeat("-", slot*slots))
		var wg sync.WaitGroup
		for w := range slots {
			mine, other := a, b
			if w%2 == 1 {
				mine, other = b, a
			}
			f, g := opened(t, mine.path("file"), os.O_RDWR), opened(t, other.path("file"), os.O_RDONLY)
			wg.Go(func() {
				got := make([]byte, slot)
				for i := range rounds {
					text := bytes.Repeat([]byte{byte('a' + (i+w)%26)}, slot)
					_, e1 := f.WriteAt(text, int64(w*slot))
					e2 := f.Sync()
					_, e3 := g.ReadAt(got, int64(w*slot))
					if err := errors.Join(e1, e2, e3); err != nil || !bytes.Equal(got, text) {
						t.Errorf("writer %d, round %d: %v, %.3q for %.3q", w, i, err, got, text)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// Options under which the kernel would show what other gateways changed are refused.
func TestBesideOptions(t *testing.T) {
	needFUSE(t)
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	fs := openBeside(t, c)
	for says, opt := range map[string]Options{
		"writeback":     {Writeback: true},
		"entry_timeout": {EntryTimeout: time.Second},
	} {
		dir := t.TempDir()
		s, err := Mount(fs, dir, opt)
		if !errors.Is(err, ErrBeside) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if err == nil {
			must(t, s.Unmount())
		}
	}
	dir, _ := mountFS(t, fs, Options{EntryTimeout: -1, AttrTimeout: -1})
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// An append beside others that was done and not answered is not done again when the kernel
// sends it to the next server.
func TestBesideAppendResent(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	book, err := ledger.New()
	must(t, err)
	t.Cleanup(func() { must(t, book.Close()) })
	append1 := func(s *serverLife, fh uint64, unique uint64) {
		t.Helper()
		in := &fuse.WriteIn{InHeader: header(unique, s.file), Fh: fh, Flags: unix.O_APPEND}
		if n, st := s.Write(nil, in, []byte("line\n")); !st.Ok() || n != 5 {
			t.Fatal(n, st)
		}
	}
	first, end := liveOver(t, openBeside(t, c), book)
	_, file, _, err := first.fs.Create(bg, vfs.Root, first.bucket, "f", vfs.CreateOptions{Mode: 0o644})
	must(t, errors.Join(err, file.Close(bg)))
	first.file = file.Ino()
	var out fuse.OpenOut
	if st := first.Open(nil, &fuse.OpenIn{InHeader: header(2, first.file), Flags: unix.O_WRONLY | unix.O_APPEND}, &out); !st.Ok() {
		t.Fatal(st)
	}
	append1(first, out.Fh, 4)
	end()
	next, end := liveOver(t, openBeside(t, c), book)
	defer end()
	append1(next, out.Fh, 4|resentBit)
	if got := next.text(t); got != "line\n" {
		t.Errorf("%q", got)
	}
	append1(next, out.Fh, 6)
	if got := next.text(t); got != "line\nline\n" {
		t.Errorf("%q", got)
	}
}
