package fusemount

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// readsKV counts what is read under contexts that say so.
type readsKV struct {
	cluster.KV
	trips atomic.Int64 // reads, each of which costs a round trip where the store is a server
	pairs atomic.Int64 // that scans met
	keys  atomic.Int64 // that were read by key
}

type countedKey struct{}

func (k *readsKV) count(ctx context.Context, view func(context.Context, func(cluster.Reader) error) error, fn func(cluster.Reader) error) error {
	if ctx.Value(countedKey{}) == nil {
		return view(ctx, fn)
	}
	return view(ctx, func(r cluster.Reader) error { return fn(&countedReader{r, k}) })
}

func (k *readsKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.count(ctx, k.KV.View, fn)
}

func (k *readsKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.count(ctx, k.KV.Peek, fn)
}

type countedReader struct {
	cluster.Reader
	k *readsKV
}

func (r *countedReader) Get(key []byte) ([]byte, error) {
	r.k.trips.Add(1)
	r.k.keys.Add(1)
	return r.Reader.Get(key)
}

func (r *countedReader) GetMany(keys [][]byte) ([][]byte, error) {
	r.k.trips.Add(1)
	r.k.keys.Add(int64(len(keys)))
	return r.Reader.GetMany(keys)
}

func (r *countedReader) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	r.k.trips.Add(1)
	return r.Reader.Scan(start, end, o, func(k, v []byte) error {
		r.k.pairs.Add(1)
		return fn(k, v)
	})
}

// listedRaw is a directory that is listed without a kernel.
type listedRaw struct {
	t    *testing.T
	f    *rawFS
	kv   *readsKV
	dir  vfs.Ino
	next uint64 // request
}

// newListedRaw makes one, whose gateway may have others beside it.
func newListedRaw(t *testing.T, beside bool, names int) *listedRaw {
	t.Helper()
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	l := &listedRaw{t: t, kv: &readsKV{KV: c.KV}}
	c.KV = l.kv
	var fs *vfs.FS
	if beside {
		fs = openBeside(t, c)
	} else {
		var err error
		fs, err = vfs.Open(bg, c, vfs.Config{Logger: testLogger(t), NoBackground: true})
		must(t, err)
		t.Cleanup(func() { must(t, fs.Close(bg)) })
	}
	b, err := fs.CreateBucket(bg, "bucket", vfs.Root)
	must(t, err)
	l.dir = b.Ino
	for i := range names {
		_, err := fs.Mknod(bg, vfs.Root, l.dir, fmt.Sprintf("n%05d", i), vfs.NodeOptions{Mode: 0o644})
		must(t, err)
	}
	l.f = newRawFS(context.WithValue(bg, countedKey{}, true), namespaceOf(fs), Options{Logger: testLogger(t)}.withDefaults(true))
	return l
}

// list reads the directory to its end, as a kernel with a buffer of so many bytes.
func (l *listedRaw) list(size int, plus bool) (names, requests int) {
	l.t.Helper()
	l.kv.trips.Store(0)
	l.kv.pairs.Store(0)
	l.kv.keys.Store(0)
	var open fuse.OpenOut
	l.next += 2
	if st := l.f.OpenDir(nil, &fuse.OpenIn{InHeader: header(l.next, l.dir)}, &open); !st.Ok() {
		l.t.Fatal(st)
	}
	defer l.f.ReleaseDir(&fuse.ReleaseIn{InHeader: header(l.next, l.dir), Fh: open.Fh})
	read, entryOut := l.f.ReadDir, 0
	if plus {
		read, entryOut = l.f.ReadDirPlus, 128
	}
	buf := make([]byte, size)
	for off := uint64(0); ; requests++ {
		out := fuse.NewDirEntryList(buf, off)
		if st := read(nil, &fuse.ReadIn{InHeader: header(99, l.dir), Fh: open.Fh, Offset: off, Size: uint32(size)}, out); !st.Ok() {
			l.t.Fatal(st)
		}
		b := out.Bytes()
		if len(b) == 0 {
			return names, requests + 1
		}
		for len(b) > 0 { // struct fuse_dirent, behind struct fuse_entry_out
			b = b[entryOut:]
			off = binary.NativeEndian.Uint64(b[8:])
			b = b[(24+binary.NativeEndian.Uint32(b[16:])+7)&^7:]
			names++
		}
	}
}

// A listing reads what it shows, and one entry more for each reply that is full, though beside
// other gateways nothing may be kept from one READDIR to the next.
func TestListingCosts(t *testing.T) {
	for _, names := range []int{1, 100, 5000} {
		for _, beside := range []bool{false, true} {
			l := newListedRaw(t, beside, names)
			for _, size := range []int{4 << 10, 32 << 10} {
				for _, plus := range []bool{false, true} {
					l.cost(names, size, plus, fmt.Sprintf("%d names, beside others: %v, %d bytes, with attributes: %v", names, beside, size, plus))
				}
			}
		}
	}
}

func (l *listedRaw) cost(names, size int, plus bool, what string) {
	l.t.Helper()
	n, requests := l.list(size, plus)
	if n != names+2 {
		l.t.Errorf("%s: %d names", what, n)
	}
	trips, pairs, keys := int(l.kv.trips.Load()), int(l.kv.pairs.Load()), int(l.kv.keys.Load())
	l.t.Logf("%s: %d requests, %d round trips, %d pairs scanned, %d read by key", what, requests, trips, pairs, keys)
	// Each request reads the directory, the entries, and all their attributes; the first one also
	// the attributes of the directory, twice.
	const dirAttrs, keysOfDir = 2, 2
	each, attrs := 2, 0
	if plus {
		each, attrs = 3, pairs
	}
	if trips > dirAttrs+each*requests {
		l.t.Errorf("%s: %d round trips for %d requests", what, trips, requests)
	}
	if pairs > names+requests {
		l.t.Errorf("%s: %d pairs were scanned", what, pairs)
	}
	if keys > dirAttrs*keysOfDir+requests+attrs {
		l.t.Errorf("%s: %d pairs were read by key", what, keys)
	}
}
