package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/crc64nvme"
)

// The store of these tests: enough that its metadata have several tables and
// files of values.
const (
	staleKeys   = 600
	staleBlobs  = 8
	staleTables = 64 << 10 // memtable
)

func staleOptions(fs vfs.FS) Options {
	o := memOptions(fs)
	o.memTable = staleTables
	return o
}

// staleValue is what key i holds after a round; every third is kept apart from
// the tables.
func staleValue(round, i int) []byte {
	v := make([]byte, 100+i%3*(separateBytes/2+50))
	rand.NewChaCha8([32]byte{byte(round), byte(i), byte(i >> 8)}).Read(v)
	return v
}

func staleBlob(i int) (cluster.BlobID, []byte) {
	data := make([]byte, 20_000+i%2*(2<<20))
	rand.NewChaCha8([32]byte{byte(i), 77}).Read(data)
	return cluster.BlobID{Content: uint64(i + 1), Seq: 1}, data
}

// fillStale writes a round of keys and, in the first, the blobs.
func fillStale(t *testing.T, c *cluster.Cluster, round int) {
	t.Helper()
	for i := 0; i < staleKeys; i += 50 {
		if err := c.KV.Update(ctx, func(txn cluster.Txn) error {
			for k := i; k < i+50; k++ {
				if err := txn.Set(fmt.Appendf(nil, "key%06d", k), staleValue(round, k)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range staleBlobs {
		id, data := staleBlob(i)
		if round > 0 {
			break
		}
		if err := storeBlob(c.Blobs, id, data); err != nil {
			t.Fatal(err)
		}
	}
}

// checkStale returns an error when something is missing, or wrong; what is
// reported as corrupt is counted.
func checkStale(c *cluster.Cluster, round int) (corrupt int, err error) {
	for i := range staleKeys {
		var got []byte
		err := c.KV.View(ctx, func(r cluster.Reader) (err error) {
			got, err = r.Get(fmt.Appendf(nil, "key%06d", i))
			return err
		})
		switch {
		case errors.Is(err, cluster.ErrCorrupt):
			corrupt++
		case err != nil:
			return corrupt, fmt.Errorf("key %d: %w", i, err)
		case !bytes.Equal(got, staleValue(round, i)):
			return corrupt, fmt.Errorf("key %d holds %d other bytes", i, len(got))
		}
	}
	for i := range staleBlobs {
		id, data := staleBlob(i)
		switch err := readBack(c.Blobs, id, data); {
		case errors.Is(err, cluster.ErrCorrupt):
			corrupt++
		case err != nil:
			return corrupt, fmt.Errorf("blob %v: %w", id, err)
		}
	}
	return corrupt, nil
}

// tree is a folder with all its files.
type tree map[string][]byte

func takeTree(t *testing.T, fs vfs.FS, dir string) tree {
	t.Helper()
	found := tree{}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := path.Join(dir, name)
		if info, err := fs.Stat(p); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			for below, data := range takeTree(t, fs, p) {
				found[below] = data
			}
			continue
		}
		f, err := fs.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		if found[p], err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return found
}

func (files tree) put(t *testing.T) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	for p, data := range files {
		if err := fs.MkdirAll(path.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		putFile(t, fs, p, data)
	}
	return fs
}

func putFile(t *testing.T, fs vfs.FS, p string, data []byte) {
	t.Helper()
	f, err := fs.Create(p, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	// vfs.File.Write may change what it is given, and does with the race detector.
	if _, err := f.Write(bytes.Clone(data)); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// named returns the paths of the files that match a pattern, in order.
func (files tree) named(t *testing.T, pattern string) (found []string) {
	t.Helper()
	for p := range files {
		if ok, err := path.Match(pattern, strings.TrimPrefix(p, "/store/")); err != nil {
			t.Fatal(err)
		} else if ok {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found
}

// staleStores makes a store in two rounds, and another store, and returns what
// is in the folders after each.
func staleStores(t *testing.T) (older, newer, other tree) {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("/store", 0o700); err != nil {
		t.Fatal(err)
	}
	c := openAt(t, staleOptions(fs))
	fillStale(t, c, 0)
	c.Close()
	older = takeTree(t, fs, "/store")
	c = openAt(t, staleOptions(fs))
	fillStale(t, c, 1)
	c.Close()
	newer = takeTree(t, fs, "/store")
	fs = vfs.NewMem()
	if err := fs.MkdirAll("/store", 0o700); err != nil {
		t.Fatal(err)
	}
	c = openAt(t, staleOptions(fs))
	fillStale(t, c, 0)
	fillStale(t, c, 1)
	c.Close()
	return older, newer, takeTree(t, fs, "/store")
}

// damaged returns what damage makes of the nth of the files of a kind; nil when
// it is to be removed, and false when that changes nothing.
func damaged(t *testing.T, damage, kind string, n int, older, newer, other tree) (to []byte, ok bool) {
	t.Helper()
	paths := newer.named(t, kind)
	was := newer[paths[n]]
	from := func(files tree) []byte {
		if paths := files.named(t, kind); len(paths) > 0 {
			return files[paths[min(n, len(paths)-1)]]
		}
		return was
	}
	switch damage {
	case "removed":
		return nil, true
	case "cut to nothing":
		to = []byte{}
	case "cut in half":
		to = was[:len(was)/2]
	case "cut by a byte":
		to = was[:max(0, len(was)-1)]
	case "flipped":
		to = bytes.Clone(was)
		if len(to) > 0 {
			to[len(to)/2] ^= 1
		}
	case "older":
		to = from(older)
	case "other's":
		to = from(other)
	case "exchanged":
		to = newer[paths[(n+1)%len(paths)]]
	default:
		t.Fatalf("no damage %q", damage)
	}
	return to, !bytes.Equal(to, was)
}

// mustRefuse are the damages that a start must refuse, with the message; for
// all others it may also find that nothing is wrong or lost, or give
// ErrCorrupt when what was damaged is read.
var mustRefuse = map[string]string{
	"meta/*.log removed":                  "the metadata are older than they were",
	"meta/*.log cut to nothing":           "the metadata are older than they were",
	"meta/*.log older":                    "the metadata are older than they were",
	"meta/*.log other's":                  "the metadata are older than they were",
	"meta/MANIFEST-* removed":             "could not open manifest file",
	"meta/MANIFEST-* cut to nothing":      "malformed manifest file",
	"meta/MANIFEST-* older":               "meta",
	"meta/MANIFEST-* other's":             "meta",
	"meta/marker.manifest* removed":       "marker.manifest",
	"meta/marker.format-version* removed": "database already exists and is not pristine",
	"FORMAT removed":                      "holds meta but no FORMAT file",
	"FORMAT cut to nothing":               "not an ogw store",
	"FORMAT cut in half":                  "not an ogw store",
	"FORMAT cut by a byte":                "not an ogw store",
	"FORMAT flipped":                      "store",
	"FORMAT other's":                      "belongs to store",
	"MARK other's":                        "belongs to store",
}

// TestStale damages every kind of file of a closed store, or puts another in
// its place: an older copy, one of another store, a sibling. A start refuses,
// naming the folder, and leaves it as it was; or all is read right or as
// ErrCorrupt. Nothing is wrong or missing without a word.
func TestStale(t *testing.T) {
	older, newer, other := staleStores(t)
	refused := map[string]bool{}
	for _, kind := range []string{"meta/*.sst", "meta/*.blob", "meta/*.log", "meta/MANIFEST-*", "meta/OPTIONS-*",
		"meta/marker.format-version*", "meta/marker.manifest*", "FORMAT", "MARK", "segments/*", "blobs/*/*"} {
		paths := newer.named(t, kind)
		if len(paths) == 0 {
			t.Fatalf("no %s", kind)
		}
		for _, n := range slices.Compact([]int{0, len(paths) - 1}) {
			for _, damage := range []string{"removed", "cut to nothing", "cut in half", "cut by a byte", "flipped",
				"older", "other's", "exchanged"} {
				to, ok := damaged(t, damage, kind, n, older, newer, other)
				if !ok {
					continue
				}
				what := kind + " " + damage
				message := runStale(t, what+" "+paths[n], newer, paths[n], to)
				if want := mustRefuse[what]; n == len(paths)-1 && want != "" {
					refused[what] = true
					if !strings.Contains(message, want) || !strings.Contains(message, "/store") && !strings.Contains(message, "metadata") {
						t.Errorf("%s: the message is %q", what, message)
					}
				}
			}
		}
	}
	for what := range mustRefuse {
		if !refused[what] {
			t.Errorf("%s was not tried", what)
		}
	}
}

// runStale opens the store with one file replaced, or removed, and returns the
// message of a refusal.
func runStale(t *testing.T, what string, files tree, p string, to []byte) string {
	t.Helper()
	fs := files.put(t)
	if to == nil {
		if err := fs.Remove(p); err != nil {
			t.Fatal(err)
		}
	} else {
		putFile(t, fs, p, to)
	}
	before := takeTree(t, fs, "/store")
	c, err := Open(ctx, staleOptions(fs))
	if err == nil {
		if _, err := checkStale(c, 1); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		c.Close()
		return ""
	}
	if !errors.Is(err, cluster.ErrCorrupt) && !errors.Is(err, cluster.ErrFormat) {
		t.Errorf("%s: Open: %v", what, err)
	}
	after := takeTree(t, fs, "/store")
	for p := range after {
		if path.Base(p) != record.MarkFile && !bytes.Equal(after[p], before[p]) {
			t.Errorf("%s: the refused start changed %s", what, p)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s: %d files before the refused start, %d after it", what, len(before), len(after))
	}
	putFile(t, fs, p, files[p])
	message := err.Error()
	if c, err = Open(ctx, staleOptions(fs)); err != nil {
		t.Errorf("%s: %s; with the right file again: %v", what, message, err)
		return message
	}
	defer c.Close()
	if corrupt, err := checkStale(c, 1); err != nil || corrupt > 0 {
		t.Errorf("%s: %s; with the right file again: %d corrupt, %v", what, message, corrupt, err)
	}
	return message
}

// TestStaleFolders exchanges whole folders, with those of an older copy or of
// another store, or removes them.
func TestStaleFolders(t *testing.T) {
	older, newer, other := staleStores(t)
	for _, test := range []struct {
		name    string
		from    tree // nil: removed
		keep    string
		without string
		message string
	}{
		{"metadata of an older copy", older, "MARK", "", "the metadata are older than they were"},
		{"metadata of another store", other, "", "", "the metadata belong to store"},
		{"no metadata", nil, "MARK", "", "the metadata are gone"},
		{"no metadata and no mark", nil, "", "", "the metadata are gone"},
		{"segments alone", nil, "", "/store/blobs/", "the metadata are gone"},
		{"blobs in files alone", nil, "", "/store/segments/", "the metadata are gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			mixed := tree{}
			for p, data := range newer {
				gone := test.without != "" && strings.HasPrefix(p, test.without)
				if !strings.HasPrefix(p, "/store/meta/") && !gone && (path.Base(p) != record.MarkFile || test.keep != "") {
					mixed[p] = data
				}
			}
			for p, data := range test.from {
				if strings.HasPrefix(p, "/store/meta/") {
					mixed[p] = data
				}
			}
			_, err := Open(ctx, staleOptions(mixed.put(t)))
			if err == nil || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "/store") {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestMetadataGone: a start without the folder of metadata, or with an empty
// one, is refused in one way, makes nothing there, and says so once; with the
// folder back, the store opens.
func TestMetadataGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data") // made private: nothing to warn of
	c := openAt(t, Options{Dir: dir})
	fillStale(t, c, 0)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	meta, saved := filepath.Join(dir, record.MetaDir), filepath.Join(t.TempDir(), record.MetaDir)
	if err := os.Rename(meta, saved); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			list = append(list, path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	var logged bytes.Buffer
	refused := func(what string) {
		t.Helper()
		before := names()
		mark, err := os.ReadFile(filepath.Join(dir, record.MarkFile))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(ctx, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if !errors.Is(err, cluster.ErrCorrupt) || !strings.Contains(err.Error(), meta+": ") || !strings.Contains(err.Error(), "the metadata are gone") {
			t.Errorf("%s: Open: %v", what, err)
		}
		if after := names(); !slices.Equal(before, after) {
			t.Errorf("%s: a refused start changed the folder: %q, before %q", what, after, before)
		}
		if now, err := os.ReadFile(filepath.Join(dir, record.MarkFile)); err != nil || !bytes.Equal(now, mark) {
			t.Errorf("%s: a refused start changed the mark: %v", what, err)
		}
		if logged.Len() > 0 {
			t.Errorf("%s: a refused start logged %s", what, logged.String())
		}
	}
	refused("no metadata")
	segments := filepath.Join(dir, record.SegmentDir)
	if err := os.Rename(segments, saved+".segments"); err != nil {
		t.Fatal(err)
	}
	refused("no metadata and no segments")
	if err := os.Rename(saved+".segments", segments); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(meta, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("an empty folder")
	if err := os.Remove(meta); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(saved, meta); err != nil {
		t.Fatal(err)
	}
	if corrupt, err := checkStale(openAt(t, Options{Dir: dir}), 0); err != nil || corrupt > 0 {
		t.Errorf("with the metadata back: %d corrupt, %v", corrupt, err)
	}
}

// TestRefusedLock: a refused start takes back Pebble's lock file, if it made it.
func TestRefusedLock(t *testing.T) {
	_, newer, other := staleStores(t)
	mixed := tree{}
	for p, data := range newer {
		if !strings.HasPrefix(p, "/store/meta/") && path.Base(p) != record.MarkFile {
			mixed[p] = data
		}
	}
	for p, data := range other {
		if strings.HasPrefix(p, "/store/meta/") && path.Base(p) != record.LockFile {
			mixed[p] = data
		}
	}
	fs := mixed.put(t)
	if _, err := Open(ctx, staleOptions(fs)); !errors.Is(err, cluster.ErrFormat) {
		t.Errorf("Open: %v", err)
	}
	if _, err := fs.Stat("/store/meta/" + record.LockFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("meta/LOCK after a refused start: %v", err)
	}
}

// TestStaleAccepted: who removes the mark goes on with what is there.
func TestStaleAccepted(t *testing.T) {
	older, newer, _ := staleStores(t)
	mixed := tree{}
	for p, data := range older {
		mixed[p] = data
	}
	mixed["/store/"+record.MarkFile] = newer["/store/"+record.MarkFile]
	fs := mixed.put(t)
	if _, err := Open(ctx, staleOptions(fs)); !errors.Is(err, cluster.ErrCorrupt) || !strings.Contains(err.Error(), "remove /store/MARK") {
		t.Fatalf("Open: %v", err)
	}
	if err := fs.Remove("/store/" + record.MarkFile); err != nil {
		t.Fatal(err)
	}
	c := openAt(t, staleOptions(fs))
	if corrupt, err := checkStale(c, 0); err != nil || corrupt > 0 {
		t.Errorf("%d corrupt, %v", corrupt, err)
	}
}

// TestMarkInTime: the mark follows the changes while the store is open.
func TestMarkInTime(t *testing.T) {
	fs := newMem(t)
	o := staleOptions(fs)
	o.markEvery = time.Millisecond
	c := openAt(t, o)
	fillStale(t, c, 0)
	deadline := time.Now().Add(time.Minute)
	for {
		b, err := readWhole(fs, "/store/"+record.MarkFile)
		if err == nil {
			m, err := record.ParseMark(b)
			if err != nil {
				t.Fatal(err)
			}
			if m.State > 0 && len(m.Files) > 0 {
				if m.Store != c.Blobs.(*Blobs).store {
					t.Error("the mark is another store's")
				}
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no mark with files was written")
		}
		time.Sleep(time.Millisecond)
	}
	// A power cut in the middle of it, and all is well.
	if err := c.KV.Sync(ctx); err != nil { // the blobs were not published
		t.Fatal(err)
	}
	again := openAt(t, staleOptions(fs.CrashClone(vfs.CrashCloneCfg{})))
	if corrupt, err := checkStale(again, 0); err != nil || corrupt > 0 {
		t.Errorf("%d corrupt, %v", corrupt, err)
	}
}

func FuzzMark(f *testing.F) {
	f.Add((&record.Mark{Store: record.StoreID{1}, State: 7}).Encode())
	f.Add((&record.Mark{State: 1, Files: map[string]record.Print{"000001.sst": {Bytes: 5, CRC: 6}, "000002.blob": {Bytes: 7, CRC: 8}}}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range [][]byte{data, binary.LittleEndian.AppendUint64(bytes.Clone(data), crc64nvme.Checksum(data))} {
			m, err := record.ParseMark(b)
			if err != nil {
				if !errors.Is(err, cluster.ErrCorrupt) {
					t.Errorf("error %v", err)
				}
				continue
			}
			if again, err := record.ParseMark(m.Encode()); err != nil || !reflect.DeepEqual(m, again) {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
	})
}
