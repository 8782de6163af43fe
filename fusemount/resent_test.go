package fusemount

import (
	"errors"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// serverLife is a server without a kernel, over a ledger that outlives it.
type serverLife struct {
	*rawFS
	fs           *vfs.FS // all of it
	bucket, file vfs.Ino
}

// live starts a server on what the one before left; end ends it.
func live(t *testing.T, c *cluster.Cluster, book *ledger.Ledger) (s *serverLife, end func()) {
	t.Helper()
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
	must(t, err)
	s, left := liveOver(t, fs, book)
	return s, func() {
		left()
		must(t, fs.Close(bg))
	}
}

// liveOver is live over a namespace that somebody else closes.
func liveOver(t *testing.T, fs *vfs.FS, book *ledger.Ledger) (s *serverLife, end func()) {
	t.Helper()
	raw := newRawFS(bg, namespaceOf(fs), Options{Logger: testLogger(t)}.withDefaults(true))
	conn := &connection{set: NewMounts(fs), raw: raw}
	raw.conn = conn
	(&taking{connection: conn, book: book, changed: make(map[vfs.Ino]struct{})}).restore()
	s = &serverLife{rawFS: raw, fs: fs}
	a, err := fs.Lookup(bg, vfs.Root, vfs.RootIno, "bucket")
	if errors.Is(err, vfs.ErrNotExist) {
		a, err = fs.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o755)
	}
	must(t, err)
	s.bucket = a.Ino
	if a, err = fs.Lookup(bg, vfs.Root, s.bucket, "f"); err == nil {
		s.file = a.Ino
	}
	return s, raw.holds.Close
}

// header is that of a request with a number, for a node.
func header(unique uint64, node vfs.Ino) fuse.InHeader {
	return fuse.InHeader{Unique: unique, NodeId: uint64(node), Caller: fuse.Caller{Pid: 1}}
}

// text reads the file "f".
func (s *serverLife) text(t *testing.T) string {
	t.Helper()
	file, err := s.fs.Open(bg, vfs.Root, s.file, vfs.OpenRead)
	must(t, err)
	b := make([]byte, 100)
	n, _ := file.ReadAt(bg, b, 0) // io.EOF
	must(t, file.Close(bg))
	return string(b[:n])
}

// openAs opens the file by a request with a number.
func (s *serverLife) openAs(t *testing.T, unique uint64, flags uint32) (fh uint64) {
	t.Helper()
	out := new(fuse.OpenOut)
	if st := s.Open(nil, &fuse.OpenIn{InHeader: header(unique, s.file), Flags: flags}, out); !st.Ok() {
		t.Fatal(st)
	}
	return out.Fh
}

// overwrite writes at the beginning of "f", as another program does.
func (s *serverLife) overwrite(t *testing.T, text string) {
	t.Helper()
	file, err := s.fs.Open(bg, vfs.Root, s.file, vfs.OpenWrite)
	must(t, err)
	_, err = file.WriteAt(bg, []byte(text), 0)
	must(t, errors.Join(err, file.Close(bg)))
}

// A request that was done and not answered does not undo, when it is sent again,
// what others changed since.
func TestResentOnce(t *testing.T) {
	const number = 1000
	var fh uint64 // of the file, open to write
	for name, c := range map[string]struct {
		ask  func(s *serverLife, unique uint64) fuse.Status
		want string // what it leaves of "before", with "NEW" written after it
	}{
		"open and cut": {func(s *serverLife, unique uint64) fuse.Status {
			return s.Open(nil, &fuse.OpenIn{InHeader: header(unique, s.file), Flags: unix.O_WRONLY | unix.O_TRUNC}, new(fuse.OpenOut))
		}, "NEW"},
		"open and cut, not noted": {func(s *serverLife, unique uint64) fuse.Status {
			out := new(fuse.OpenOut)
			st := s.Open(nil, &fuse.OpenIn{InHeader: header(unique, s.file), Flags: unix.O_WRONLY | unix.O_TRUNC}, out)
			s.surv.book.Files.Remove(out.Fh)
			return st
		}, "NEW"},
		"setattr of a size": {func(s *serverLife, unique uint64) fuse.Status {
			in := &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: header(unique, s.file), Valid: fuse.FATTR_SIZE, Size: 1}}
			return s.SetAttr(nil, in, new(fuse.AttrOut))
		}, "NEW"},
		"write": {func(s *serverLife, unique uint64) fuse.Status {
			n, st := s.Write(nil, &fuse.WriteIn{InHeader: header(unique, s.file), Fh: fh, Size: 4}, []byte("last"))
			if n != 4 && st.Ok() {
				return fuse.EIO
			}
			return st
		}, "NEWtre"},
		"fallocate": {func(s *serverLife, unique uint64) fuse.Status {
			return s.Fallocate(nil, &fuse.FallocateIn{InHeader: header(unique, s.file), Fh: fh, Length: 4, Mode: unix.FALLOC_FL_ZERO_RANGE})
		}, "NEW\x00re"},
		"copy": {func(s *serverLife, unique uint64) fuse.Status {
			n, st := s.CopyFileRange(nil, &fuse.CopyFileRangeIn{InHeader: header(unique, s.file), FhIn: fh, FhOut: fh, OffIn: 3, Len: 3})
			if n != 3 && st.Ok() {
				return fuse.EIO
			}
			return st
		}, "NEWore"},
		"create": {func(s *serverLife, unique uint64) fuse.Status {
			out := new(fuse.CreateOut)
			st := s.Create(nil, &fuse.CreateIn{InHeader: header(unique, s.bucket), Flags: unix.O_WRONLY | unix.O_EXCL, Mode: 0o644}, "g", out)
			if st.Ok() {
				_ = s.fs.Unlink(bg, vfs.Root, s.bucket, "g") // by somebody else; the second time it is not there
			}
			return st
		}, "NEWore"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			defer func() { must(t, cl.Close()) }()
			book, err := ledger.New()
			must(t, err)
			defer func() { must(t, book.Close()) }()
			s, end := live(t, cl, book)
			_, file, _, err := s.fs.Create(bg, vfs.Root, s.bucket, "f", vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite})
			must(t, err)
			_, err = file.WriteAt(bg, []byte("before"), 0)
			must(t, errors.Join(err, file.Close(bg)))
			s.file = file.Ino()
			out := new(fuse.OpenOut)
			if st := s.Open(nil, &fuse.OpenIn{InHeader: header(2, s.file), Flags: unix.O_RDWR}, out); !st.Ok() {
				t.Fatal(st)
			}
			fh = out.Fh
			if st := c.ask(s, number); !st.Ok() {
				t.Fatal(st)
			}
			s.overwrite(t, "NEW")
			if got := s.text(t); got != c.want {
				t.Fatalf("done once, it leaves %q, want %q", got, c.want)
			}
			end()
			s, end = live(t, cl, book)
			defer end()
			if st := c.ask(s, number|resentBit); !st.Ok() {
				t.Fatal(st)
			}
			if got := s.text(t); got != c.want {
				t.Errorf("sent again, it leaves %q, want %q", got, c.want)
			}
		})
	}
}

// What was appended past the kernel's pages, and waited for the disk while many others wrote,
// is not appended again when the server was killed before its answer.
func TestResentBehindOthers(t *testing.T) {
	k := begin(t, "before")
	fh := k.open(2, unix.O_WRONLY|unix.O_APPEND)
	k.files.get(fh).direct = true
	const number = 1000
	ask := func(unique uint64) {
		t.Helper()
		in := &fuse.WriteIn{InHeader: header(unique, k.file), Fh: fh, Offset: 6, Size: 3, Flags: unix.O_WRONLY | unix.O_APPEND | unix.O_DSYNC}
		if n, st := k.Write(nil, in, []byte("NEW")); !st.Ok() || n != 3 {
			t.Fatal(n, st)
		}
	}
	k.waits = func(uint64) {
		for i := range uint64(1 << 13) {
			h := header(number+2*(i+1), k.file)
			k.surv.note(&h, 1)
		}
	}
	ask(number)
	k.next(nil)
	k.files.get(fh).direct = true
	ask(number | resentBit)
	k.holds("beforeNEW")
}
