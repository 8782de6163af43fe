package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
)

// damagedStore is a store whose objects can be damaged on the medium.
type damagedStore struct {
	t     *testing.T
	dir   string
	c     *cluster.Cluster
	fs    *FS
	paths map[string]string // of the medium, by object
	ids   map[string]string // blobs, by object
}

func openQuarantine(t *testing.T) *damagedStore {
	s := &damagedStore{t: t, dir: t.TempDir(), paths: map[string]string{}, ids: map[string]string{}}
	s.open()
	t.Cleanup(s.close)
	_, err := s.fs.CreateBucket(bg, "bbb", Root)
	want(t, err, nil)
	return s
}

func (s *damagedStore) open() {
	var err error
	s.c, err = local.Open(bg, local.Options{Dir: s.dir, SegmentBytes: 4 << 20})
	want(s.t, err, nil)
	s.fs, err = Open(bg, s.c, Config{NoBackground: true, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	want(s.t, err, nil)
}

func (s *damagedStore) close() {
	want(s.t, s.fs.Close(bg), nil)
	want(s.t, s.c.Close(), nil)
}

func (s *damagedStore) restart() {
	s.t.Helper()
	s.close()
	s.open()
}

func (s *damagedStore) put(key string, size int) []byte {
	s.t.Helper()
	body := bytes.Repeat([]byte(key+"."), size/(len(key)+1)+1)[:size]
	_, err := s.fs.PutObject(bg, ObjectName{"bbb", key}, bytes.NewReader(body), PutOptions{Size: int64(size)})
	want(s.t, err, nil)
	return body
}

// damage flips a byte of an object of one blob, behind the back of all.
func (s *damagedStore) damage(key string, at int64) {
	s.t.Helper()
	_, list, err := s.fs.Whereis(bg, "bbb/"+key)
	want(s.t, err, nil)
	where := list[0].Nodes[0]
	if strings.HasSuffix(where.Path, ".seg") {
		at += segmentOffset(s.t, where.Detail)
	}
	flipByte(s.t, where.Path, at)
	s.paths[key], s.ids[key] = where.Path, list[0].Blob
}

func (s *damagedStore) quarantine(trace bool) map[string]DamagedBlob {
	s.t.Helper()
	list, err := s.fs.Quarantine(bg, trace)
	want(s.t, err, nil)
	found := make(map[string]DamagedBlob)
	for _, d := range list {
		found[d.Blob] = d
	}
	return found
}

func (s *damagedStore) remove(key string) {
	s.t.Helper()
	_, err := s.fs.DeleteObject(bg, ObjectName{"bbb", key}, DeleteOptions{})
	want(s.t, err, nil)
	_, err = s.fs.Collect(bg)
	want(s.t, err, nil)
}

// problems counts the findings of a check by their kind.
func (s *damagedStore) problems(o CheckOptions) (kinds map[string]int, rep CheckReport) {
	s.t.Helper()
	rep, err := s.fs.Check(bg, o)
	want(s.t, err, nil)
	kinds = make(map[string]int)
	for _, p := range rep.Problems {
		kinds[p.Kind]++
	}
	return kinds, rep
}

// TestQuarantine: damage is noted when it is met, with the files that use it,
// their good blocks stay readable, and the bytes outlive the files until they
// are released.
func TestQuarantine(t *testing.T) {
	s := openQuarantine(t)
	small, large := s.put("small", 300_000), s.put("large", 5<<20)
	s.put("healthy", 250_000)
	_, err := s.fs.CopyObject(bg, ObjectName{"bbb", "small"}, ObjectName{"bbb", "dir/copy"}, CopyOptions{})
	want(t, err, nil)
	s.damage("small", 200_000)
	s.damage("large", 3<<20)

	// A read takes note at once: no save, no pass of the scrub follows.
	if _, err := readObject(s.fs, "bbb", "dir/copy"); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("read of damage: %v", err)
	}
	if d := s.quarantine(false)[s.ids["small"]]; d.By != "read" || d.Size != 300_000 || d.Aside || d.Path != s.paths["small"] ||
		!strings.Contains(d.Error, "checksum") || d.Found.IsZero() {
		t.Errorf("noted by a read: %+v", d)
	}
	kinds, rep := s.problems(CheckOptions{Data: true})
	if kinds["corrupt-data"] != 3 || len(kinds) != 1 { // one line for each file
		t.Errorf("check: %+v", rep.Problems)
	}
	if kinds, rep = s.problems(CheckOptions{}); kinds["damaged-blob"] != 2 || len(kinds) != 1 {
		t.Errorf("check: %+v", rep.Problems)
	}
	for _, want := range []string{"bbb/dir/copy", "bbb/small", "bbb/large"} {
		if !slices.ContainsFunc(rep.Problems, func(p Problem) bool {
			return p.Kind == "damaged-blob" && strings.Contains(p.Detail, want)
		}) {
			t.Errorf("no problem names %s: %+v", want, rep.Problems)
		}
	}
	s.restart()
	q := s.quarantine(false)
	if files := q[s.ids["small"]].Files; !slices.Equal(slices.Sorted(slices.Values(files)), []string{"bbb/dir/copy", "bbb/small"}) {
		t.Errorf("files of the shared blob: %v", files)
	}
	if d := q[s.ids["large"]]; d.By != "check" || !slices.Equal(d.Files, []string{"bbb/large"}) {
		t.Errorf("noted by the check: %+v", d)
	}
	s.goodBlocks("small", small, 200_000)
	s.goodBlocks("large", large, 3<<20)

	// What is in use is not released, nor is what is unknown.
	if _, _, err := s.fs.Release(bg, q[s.ids["small"]].ID); !errors.Is(err, ErrBusy) {
		t.Errorf("release of what is in use: %v", err)
	}
	if _, _, err := s.fs.Release(bg, cluster.BlobID{Content: 1, Seq: 1}); !errors.Is(err, ErrNotExist) {
		t.Errorf("release of what is not there: %v", err)
	}
	if n, _, err := s.fs.Release(bg); n != 0 || err != nil {
		t.Errorf("release of nothing: %d, %v", n, err)
	}

	// One file of two goes: the blob is still lost to the other.
	s.remove("dir/copy")
	if d := s.quarantine(false)[s.ids["small"]]; d.Aside || !slices.Equal(d.Files, []string{"bbb/small"}) {
		t.Errorf("one of two files is deleted: %+v", d)
	}
	// Overwritten, and deleted: no file misses them any more, the bytes stay.
	again := s.put("small", 290_000)
	s.remove("large")
	for range 2 {
		if got, err := readObject(s.fs, "bbb", "small"); err != nil || !bytes.Equal(got, again) {
			t.Errorf("overwritten: %d bytes, %v", len(got), err)
		}
		if d := s.fs.Scrub(bg); len(d.Damaged) != 0 || d.Aside != 2 || d.AsideBytes != 300_000+5<<20 {
			t.Errorf("still lost: %+v", d)
		}
		kinds, rep = s.problems(CheckOptions{Repair: true, Data: true})
		if len(kinds) != 0 || rep.Aside != 2 || rep.AsideBytes != 300_000+5<<20 {
			t.Errorf("check: %+v", rep)
		}
		for _, d := range s.quarantine(true) {
			if !d.Aside || len(d.Files) != 0 || d.Path == "" {
				t.Errorf("set aside: %+v", d)
			}
			if err := cluster.VerifyBlob(bg, s.c.Blobs, d.ID); !errors.Is(err, cluster.ErrCorrupt) {
				t.Errorf("its bytes: %v", err)
			}
		}
		if raw, err := os.ReadFile(s.paths["large"]); err != nil || !bytes.HasPrefix(raw, large[:3<<20]) {
			t.Errorf("what is readable cannot be saved: %d bytes, %v", len(raw), err)
		}
		want(t, s.fs.scrub.Pass(bg, 0), nil)
		s.restart()
		s.fs.leftovers.Run(bg) // does not take them for what a crash left
	}
	n, freed, err := s.fs.Release(bg)
	if n != 2 || freed != 300_000+5<<20 || err != nil {
		t.Fatalf("release: %d, %d, %v", n, freed, err)
	}
	if q := s.quarantine(true); len(q) != 0 {
		t.Errorf("after the release: %+v", q)
	}
	s.gone("large")
	kinds, rep = s.problems(CheckOptions{Data: true})
	if len(kinds) != 0 || rep.Aside != 0 {
		t.Errorf("check: %+v", rep)
	}
}

// goodBlocks reads an object around its damage, through both kinds of doors.
func (s *damagedStore) goodBlocks(key string, body []byte, damage int) {
	s.t.Helper()
	bad := damage / cluster.BlockBytes * cluster.BlockBytes
	after := min(bad+cluster.BlockBytes, len(body))
	o, err := s.fs.GetObject(bg, ObjectName{"bbb", key}, GetOptions{})
	want(s.t, err, nil)
	defer o.Close()
	a, err := s.fs.Resolve(bg, Root, "bbb/"+key, true)
	want(s.t, err, nil)
	f, err := s.fs.Open(bg, Root, a.Ino, OpenRead)
	want(s.t, err, nil)
	defer f.Close(bg)
	posix := func(p []byte, off int64) (int, error) { return f.ReadAt(bg, p, off) }
	for what, read := range map[string]func([]byte, int64) (int, error){"object": o.ReadAt, "file": posix} {
		for _, r := range [][2]int{{0, bad}, {after, len(body)}} {
			got := make([]byte, r[1]-r[0])
			if n, err := read(got, int64(r[0])); n != len(got) || !bytes.Equal(got, body[r[0]:r[1]]) {
				s.t.Errorf("%s: %s from %d to %d: %d bytes, %v", what, key, r[0], r[1], n, err)
			}
		}
		if _, err := read(make([]byte, 100), int64(bad)); !errors.Is(err, ErrCorrupt) {
			s.t.Errorf("%s: %s at the damage: %v", what, key, err)
		}
	}
}

// gone waits until the engine removed a file.
func (s *damagedStore) gone(key string) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(s.paths[key]); os.IsNotExist(err) {
			return
		}
	}
	s.t.Errorf("the file of %s is still there", key)
}

// TestQuarantinePart: a blob of which a file uses a part is in use, and set
// aside when that is overwritten too.
func TestQuarantinePart(t *testing.T) {
	s := openQuarantine(t)
	s.put("key", 300_000)
	s.damage("key", 10)
	want(t, s.fs.scrub.Pass(bg, 0), nil)
	a, err := s.fs.Resolve(bg, Root, "bbb/key", true)
	want(t, err, nil)
	for i, off := range []int64{0, 150_000} {
		f, err := s.fs.Open(bg, Root, a.Ino, OpenRead|OpenWrite)
		want(t, err, nil)
		_, err = f.WriteAt(bg, bytes.Repeat([]byte("new"), 50_000), off)
		want(t, err, nil)
		want(t, f.Close(bg), nil)
		_, err = s.fs.Collect(bg)
		want(t, err, nil)
		if d := s.quarantine(true)[s.ids["key"]]; d.By != "scrub" || d.Aside != (i == 1) {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if got, err := readObject(s.fs, "bbb", "key"); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("new"), 100_000)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestQuarantineMended: who puts the right bytes back has the file back; what
// is mended and in no file goes with a repair.
func TestQuarantineMended(t *testing.T) {
	s := openQuarantine(t)
	for _, key := range []string{"kept", "deleted"} {
		s.put(key, 2<<20)
		s.damage(key, 1000)
	}
	want(t, s.fs.scrub.Pass(bg, 0), nil)
	s.remove("deleted")
	for _, key := range []string{"kept", "deleted"} {
		flipByte(t, s.paths[key], 1000)
	}
	kinds, rep := s.problems(CheckOptions{})
	if len(kinds) != 0 || rep.Aside != 1 {
		t.Errorf("check: %+v", rep)
	}
	if _, rep = s.problems(CheckOptions{Repair: true}); rep.Aside != 0 {
		t.Errorf("repair: %+v", rep)
	}
	s.gone("deleted")
	if _, err := readObject(s.fs, "bbb", "kept"); err != nil {
		t.Error(err)
	}
}

// TestQuarantineUnnamed: a damaged blob that no file names is listed without
// one, and kept as well.
func TestQuarantineUnnamed(t *testing.T) {
	s := openQuarantine(t)
	s.put("key", 100_000)
	s.damage("key", 10)
	want(t, s.fs.scrub.Pass(bg, 0), nil)
	// What a crash may leave: the blob is there, and nothing names it.
	info, err := s.fs.HeadObject(bg, ObjectName{"bbb", "key"}, GetOptions{})
	want(t, err, nil)
	want(t, s.fs.update(bg, func(tx cluster.Txn, o *op) error {
		n, err := record.GetInode(tx, info.Ino)
		if err != nil {
			return err
		}
		if err := tx.Delete(record.ExtentKey(n.Content, 0)); err != nil {
			return err
		}
		n.Content, n.Size = 0, 0
		return record.PutInode(tx, n)
	}), nil)
	s.restart()
	s.fs.leftovers.Run(bg)
	if d := s.quarantine(true)[s.ids["key"]]; !d.Aside {
		t.Errorf("%+v", d)
	}
	if kinds, rep := s.problems(CheckOptions{Repair: true}); kinds["orphan-blob"] != 0 || rep.Aside != 1 {
		t.Errorf("check: %+v", rep)
	}
}

// TestQuarantineBound: beyond the bound damage is an error to its readers all
// the same, and records of blobs that are gone make room.
func TestQuarantineBound(t *testing.T) {
	s := openQuarantine(t)
	for i := range quarantine.MaxDamaged {
		id := cluster.BlobID{Content: 1 << 40, Seq: uint64(i)}
		_, err := s.fs.quarantine.Write(cluster.Relaxed(bg), id, func(*record.Damaged) *record.Damaged {
			return &record.Damaged{Error: fmt.Sprint(i)}
		})
		want(t, err, nil)
	}
	s.put("key", 100_000)
	s.damage("key", 10)
	if _, err := readObject(s.fs, "bbb", "key"); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if q := s.quarantine(false); len(q) != quarantine.MaxDamaged {
		t.Errorf("%d in quarantine", len(q))
	}
	want(t, s.fs.scrub.Pass(bg, 0), nil)
	if q := s.quarantine(true); len(q) != 1 || !slices.Equal(q[s.ids["key"]].Files, []string{"bbb/key"}) {
		t.Errorf("%d in quarantine", len(q))
	}
}

// TestQuarantineBackground: the files of what a read met are found while the
// process runs.
func TestQuarantineBackground(t *testing.T) {
	c := openLocal(t)
	defer c.Close() //nolint:errcheck // of a test
	fs, err := Open(bg, c, Config{})
	want(t, err, nil)
	defer fs.Close(bg) //nolint:errcheck // of a test
	s := &damagedStore{t: t, c: c, fs: fs, paths: map[string]string{}, ids: map[string]string{}}
	_, err = fs.CreateBucket(bg, "bbb", Root)
	want(t, err, nil)
	s.put("key", 100_000)
	s.damage("key", 10)
	if _, err := readObject(fs, "bbb", "key"); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if d := s.quarantine(false)[s.ids["key"]]; slices.Equal(d.Files, []string{"bbb/key"}) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%+v", d)
		}
	}
}

// TestQuarantineShared: where several processes share a store, what one notes
// the other does not delete.
func TestQuarantineShared(t *testing.T) {
	c := openLocal(t)
	t.Cleanup(func() { want(t, c.Close(), nil) })
	two := openBeside(t, beside(t, c)) // it collects, since it is older
	one := openBeside(t, beside(t, c))
	defer func() { want(t, errors.Join(one.Close(bg), two.Close(bg)), nil) }()
	s := &damagedStore{t: t, c: c, fs: one, paths: map[string]string{}, ids: map[string]string{}}
	_, err := one.CreateBucket(bg, "bbb", Root)
	want(t, err, nil)
	s.put("key", 100_000)
	s.damage("key", 10)
	if _, err := readObject(one, "bbb", "key"); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	s.fs = two
	s.remove("key")
	s.fs = one
	if d := s.quarantine(false)[s.ids["key"]]; !d.Aside {
		t.Errorf("%+v", d)
	}
}
