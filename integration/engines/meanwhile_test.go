package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// beside are two namespaces of one store, of which neither is notified of what the
// other one changes, and a bucket of it.
type beside struct {
	t           *testing.T
	here, there *vfs.FS
	name        string // of the bucket
	bucket      vfs.Ino
}

// openBeside opens another namespace over what m keeps.
func openBeside(t *testing.T, m *metaServer, blobs cluster.Blobs) *vfs.FS {
	t.Helper()
	c := &cluster.Cluster{KV: unclosed{m.open(t)}, Blobs: blobs, Name: "test"}
	c, err := vfs.Join(context.Background(), c, vfs.Gateway{Host: "test", Started: time.Now(), Beside: true, Serves: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := vfs.Open(context.Background(), c, vfs.Config{})
	if err != nil {
		t.Fatal(errors.Join(err, c.KV.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(fs.Close(context.Background()), c.KV.Close()); err != nil {
			t.Error(err)
		}
	})
	return fs
}

// unclosed is an engine that somebody else closes.
type unclosed struct{ cluster.KV }

func (unclosed) Close() error { return nil }

// must fails the test.
func (b *beside) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

const writer = vfs.UserID("writer")

// makeBucket makes the bucket, in which writer may write.
func (b *beside) makeBucket(fs *vfs.FS) {
	b.t.Helper()
	info, err := fs.CreateBucket(context.Background(), b.name, vfs.NewCred(0, 0))
	b.must(err)
	b.must(fs.SetBucketGrants(context.Background(), b.name, vfs.Grants{
		{Grantee: vfs.GranteeUser, User: writer, Permission: vfs.PermWrite}, {Grantee: vfs.GranteeUser, User: writer, Permission: vfs.PermRead},
	}))
	b.bucket = info.Ino
}

func (b *beside) object(key string) vfs.ObjectName { return vfs.ObjectName{Bucket: b.name, Key: key} }

// store puts a text as the program itself.
func (b *beside) store(fs *vfs.FS, key, text string) vfs.ObjectInfo {
	b.t.Helper()
	info, err := fs.PutObject(context.Background(), b.object(key), strings.NewReader(text), vfs.PutOptions{Size: int64(len(text))})
	b.must(err)
	return info
}

func (b *beside) remove(fs *vfs.FS, key string) {
	b.t.Helper()
	_, err := fs.DeleteObject(context.Background(), b.object(key), vfs.DeleteOptions{})
	b.must(err)
}

// stored returns the text of an object, "" if there is none.
func (b *beside) stored(fs *vfs.FS, key string) string {
	b.t.Helper()
	o, err := fs.GetObject(context.Background(), b.object(key), vfs.GetOptions{})
	if errors.Is(err, vfs.ErrNoSuchKey) || errors.Is(err, vfs.ErrNoSuchBucket) {
		return ""
	}
	b.must(err)
	defer o.Close()
	text := make([]byte, o.Info.Size)
	if _, err := o.ReadAt(text, 0); !errors.Is(err, io.EOF) {
		b.must(err)
	}
	return string(text)
}

// whileRead is a body before which something happens.
type whileRead struct {
	io.Reader
	happens func()
}

func (r *whileRead) Read(p []byte) (int, error) {
	if r.happens != nil {
		r.happens()
		r.happens = nil
	}
	return r.Reader.Read(p)
}

// put stores "ours" here as the S3 door does, with a change between its two steps.
func (b *beside) put(key string, cond vfs.Preconditions, change func(*beside)) error {
	ctx := vfs.WithSubject(context.Background(), &vfs.Subject{User: writer, UID: 1000})
	info, err := b.here.Authorize(ctx, vfs.ActWriteObject, b.object(key))
	if err != nil {
		return err
	}
	body := &whileRead{strings.NewReader("ours"), func() { change(b) }}
	_, err = b.here.PutObject(ctx, b.object(key), body, vfs.PutOptions{Cond: cond, Bucket: info.Ino, Size: 4})
	return err
}

// meanwhile is what happens there between the two steps of a PUT of "ours" here, and
// what comes of that.
type meanwhile struct {
	name, key string
	first     string // the key holds at the beginning, if not ""
	cond      func(first vfs.ETag) vfs.Preconditions
	change    func(*beside)
	err       error
	text      string // that the key holds at the end
}

var meanwhiles = []meanwhile{
	{name: "nothing", key: "k", change: func(*beside) {}, text: "ours"},
	{name: "created", key: "k", change: func(b *beside) { b.store(b.there, "k", "theirs") }, text: "ours"},
	{
		name: "created, if there is none", key: "k", change: func(b *beside) { b.store(b.there, "k", "theirs") },
		cond: func(vfs.ETag) vfs.Preconditions { return vfs.Preconditions{IfNoneMatch: []vfs.ETag{"*"}} },
		err:  vfs.ErrPrecondition, text: "theirs",
	},
	{
		name: "replaced, if it is the first", key: "k", first: "first", change: func(b *beside) { b.store(b.there, "k", "theirs") },
		cond: func(first vfs.ETag) vfs.Preconditions { return vfs.Preconditions{IfMatch: []vfs.ETag{first}} },
		err:  vfs.ErrPrecondition, text: "theirs",
	},
	{name: "removed", key: "k", first: "first", change: func(b *beside) { b.remove(b.there, "k") }, text: "ours"},
	{
		name: "protected", key: "k", first: "first",
		change: func(b *beside) {
			a, err := b.there.Lookup(context.Background(), vfs.Root, b.bucket, "k")
			b.must(err)
			b.must(b.there.SetFlags(context.Background(), vfs.Root, a.Ino, vfs.FlagImmutable))
		},
		err: vfs.ErrProtected, text: "first",
	},
	{name: "its directory made", key: "d/k", change: func(b *beside) { b.store(b.there, "d/x", "theirs") }, text: "ours"},
	{name: "its directory removed", key: "d/k", first: "first", change: func(b *beside) { b.remove(b.there, "d/k") }, text: "ours"},
	{
		name: "the bucket removed", key: "k",
		change: func(b *beside) { b.must(b.there.DeleteBucket(context.Background(), b.name)) },
		err:    vfs.ErrNoSuchBucket,
	},
	{
		name: "the bucket replaced", key: "k",
		change: func(b *beside) {
			b.must(b.there.DeleteBucket(context.Background(), b.name))
			b.makeBucket(b.there)
		},
		err: vfs.ErrNoSuchBucket,
	},
	{
		name: "the right taken away", key: "k",
		change: func(b *beside) { b.must(b.there.SetBucketGrants(context.Background(), b.name, nil)) },
		err:    vfs.ErrAccess,
	},
}

func (w *meanwhile) test(b *beside) {
	b.makeBucket(b.here)
	var cond vfs.Preconditions
	if w.first != "" {
		ctx := vfs.WithSubject(context.Background(), &vfs.Subject{User: writer, UID: 1000})
		info, err := b.here.PutObject(ctx, b.object(w.key), strings.NewReader(w.first), vfs.PutOptions{Size: int64(len(w.first))})
		b.must(err)
		if w.cond != nil {
			cond = w.cond(info.ETag)
		}
	} else if w.cond != nil {
		cond = w.cond("")
	}
	if err := b.put(w.key, cond, w.change); !errors.Is(err, w.err) {
		b.t.Errorf("%v, want %v", err, w.err)
	}
	for _, fs := range []*vfs.FS{b.here, b.there} {
		if text := b.stored(fs, w.key); text != w.text {
			b.t.Errorf("%q is stored, want %q", text, w.text)
		}
	}
}

// TestMeanwhile: what another gateway changes between an early answer to a PUT, of
// which the reads are remembered, and its publication counts in that.
func TestMeanwhile(t *testing.T) {
	onBeside(t, func(t *testing.T, open func(t *testing.T) *beside) {
		for _, w := range meanwhiles {
			t.Run(w.name, func(t *testing.T) { w.test(open(t)) })
		}
		t.Run("a pair made", func(t *testing.T) { testPairMade(t, open(t)) })
	})
}

// onBeside runs a test on two namespaces of each kind of server, which have a bucket
// for each case; the store must be sound at the end.
func onBeside(t *testing.T, test func(t *testing.T, open func(t *testing.T) *beside)) {
	t.Helper()
	t.Parallel()
	for _, kind := range metaKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			m, blobs := kind.start(t), mem.New(mem.Options{}).Blobs
			here, there := openBeside(t, m, blobs), openBeside(t, m, blobs)
			buckets := 0
			test(t, func(t *testing.T) *beside {
				buckets++
				return &beside{t: t, here: here, there: there, name: fmt.Sprint("bucket", buckets)}
			})
			report, err := there.Check(context.Background(), vfs.CheckOptions{})
			if err != nil || len(report.Problems) > 0 {
				t.Errorf("the store has %v, %v", report.Problems, err)
			}
		})
	}
}

// testPairMade: a directory of the same name, which was made there, is listed beside the
// file.
func testPairMade(t *testing.T, b *beside) {
	b.makeBucket(b.here)
	b.must(b.put("p", vfs.Preconditions{}, func(b *beside) { b.store(b.there, "p/x", "theirs") }))
	for _, fs := range []*vfs.FS{b.here, b.there} {
		var names []string
		b.must(fs.ReadDir(context.Background(), vfs.Root, b.bucket, vfs.ReadDirOptions{}, func(e vfs.DirEntry) error {
			names = append(names, e.Name)
			return nil
		}))
		if !slices.Contains(names, "p") || !slices.Contains(names, ".ogw~f~p") {
			t.Errorf("listed are %q", names)
		}
	}
}

// creating is what happens there before or after a file "f" is created here, in which
// "ours" is written then, and what comes of that.
type creating struct {
	name   string
	before func(b *beside, dir vfs.Ino) // after here looked, and found no such name
	after  func(b *beside, dir vfs.Ino)
	how    vfs.CreateOptions
	made   error // of Create
	closed error // of the write and the close
	text   string
}

func (b *beside) open(fs *vfs.FS, dir vfs.Ino, how vfs.CreateOptions) (*vfs.File, error) {
	how.Mode, how.Flags = 0o644, vfs.OpenWrite
	_, f, _, err := fs.Create(context.Background(), vfs.Root, dir, "f", how)
	return f, err
}

// write writes text at off and closes the file.
func write(f *vfs.File, text string, off int64) error {
	_, err := f.WriteAt(context.Background(), []byte(text), off)
	return errors.Join(err, f.Close(context.Background()))
}

func theirs(off int64) func(b *beside, dir vfs.Ino) {
	return func(b *beside, dir vfs.Ino) {
		f, err := b.open(b.there, dir, vfs.CreateOptions{})
		b.must(err)
		b.must(write(f, "theirs", off))
	}
}

var creatings = []creating{
	{name: "nothing", text: "ours"},
	{name: "created before", before: theirs(0), text: "oursrs"},
	{name: "created before, exclusively", before: theirs(0), how: vfs.CreateOptions{Exclusive: true}, made: vfs.ErrExist, text: "theirs"},
	{
		name:   "the directory removed before",
		before: func(b *beside, _ vfs.Ino) { b.must(b.there.Rmdir(context.Background(), vfs.Root, b.bucket, "d")) },
		made:   vfs.ErrNotExist, // programs may work in it still, as in one process
	},
	{
		name: "the directory protected before",
		before: func(b *beside, dir vfs.Ino) {
			b.must(b.there.SetFlags(context.Background(), vfs.Root, dir, vfs.FlagImmutable))
		},
		made: vfs.ErrProtected,
	},
	{name: "written after", after: theirs(4), text: "ourstheirs"},
	{name: "written after, at the same place", after: theirs(0), text: "oursrs"},
	{
		name: "replaced after", after: func(b *beside, _ vfs.Ino) { b.store(b.there, "d/f", "theirs") },
		text: "oursrs", // as in one process: nothing was written that the object could have replaced
	},
	{
		name:  "removed after", // what is open outlives its name
		after: func(b *beside, dir vfs.Ino) { b.must(b.there.Unlink(context.Background(), vfs.Root, dir, "f")) },
	},
	{
		name: "protected after",
		after: func(b *beside, dir vfs.Ino) {
			a, err := b.there.Lookup(context.Background(), vfs.Root, dir, "f")
			b.must(err)
			b.must(b.there.SetFlags(context.Background(), vfs.Root, a.Ino, vfs.FlagImmutable))
		},
		closed: vfs.ErrProtected,
	},
}

func (c *creating) test(b *beside) {
	b.makeBucket(b.here)
	d, err := b.here.Mkdir(context.Background(), vfs.Root, b.bucket, "d", 0o755)
	b.must(err)
	if _, err := b.here.Lookup(context.Background(), vfs.Root, d.Ino, "f"); !errors.Is(err, vfs.ErrNotExist) {
		b.t.Fatalf("before it is made: %v", err)
	}
	if c.before != nil {
		c.before(b, d.Ino)
	}
	f, err := b.open(b.here, d.Ino, c.how)
	if !errors.Is(err, c.made) {
		b.t.Errorf("Create: %v, want %v", err, c.made)
	}
	if err == nil {
		if c.after != nil {
			c.after(b, d.Ino)
		}
		if err := write(f, "ours", 0); !errors.Is(err, c.closed) {
			b.t.Errorf("write and Close: %v, want %v", err, c.closed)
		}
	}
	for _, fs := range []*vfs.FS{b.here, b.there} {
		if text := b.stored(fs, "d/f"); text != c.text {
			b.t.Errorf("%q is stored, want %q", text, c.text)
		}
	}
}

// TestCreateMeanwhile: what another gateway changes beside a create, write and close of
// a file, which use what is remembered, counts in them.
func TestCreateMeanwhile(t *testing.T) {
	onBeside(t, func(t *testing.T, open func(t *testing.T) *beside) {
		for _, c := range creatings {
			t.Run(c.name, func(t *testing.T) { c.test(open(t)) })
		}
	})
}
