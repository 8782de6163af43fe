package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/iam"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// Records of the metadata store that hold anything at all: every operation
// gives an error or the right bytes, Check reports all and ends, and nothing
// panics. (A disk does not do this, checksums of the engine are in between,
// also those of inline contents; a defect may.)

// damageInline is the largest inline content in the store to be damaged.
const damageInline = 100

// damagedBodies are the objects of that store.
func damagedBodies() map[string]string {
	return map[string]string{
		"empty": "", "inline": "some bytes", "d/e/blob": strings.Repeat("blob ", 2000),
		"d/copy": strings.Repeat("blob ", 2000), "parts": strings.Repeat("p", 300), "d/linked": "of two names",
		strings.Repeat("long", 100): "name", "d/..": "escaped",
		"d/pieces": strings.Repeat("piece ", 100),
	}
}

// populate makes a store that has a record in nearly every table.
func populate(t testing.TB, fs *FS) {
	t.Helper()
	bucketFS(t, fs)
	bodies := damagedBodies()
	for _, key := range slices.Sorted(maps.Keys(bodies)) { // the same records each time
		if key != "parts" && key != "d/copy" && key != "d/pieces" {
			put(t, fs, key, bodies[key])
		}
	}
	_, err := fs.CopyObject(bg, ObjectName{"bucket", "d/e/blob"}, ObjectName{"bucket", "d/copy"}, CopyOptions{})
	want(t, err, nil)
	for _, key := range []string{"parts", "open"} {
		u, err := fs.CreateUpload(bg, ObjectName{"bucket", key}, PutOptions{Size: -1}, ChecksumSHA256, true)
		want(t, err, nil)
		p, err := fs.PutPart(bg, ObjectName{"bucket", key}.Upload(u.ID), 1, strings.NewReader(strings.Repeat("p", 300)), PutOptions{Size: 300})
		want(t, err, nil)
		if key == "parts" {
			_, err = fs.CompleteUpload(bg, ObjectName{"bucket", key}.Upload(u.ID), CompleteOptions{Parts: []CompletePart{{Number: 1, ETag: p.ETag, Checksums: p.Checksums}}})
			want(t, err, nil)
		}
	}
	dir, err := fs.Resolve(bg, Root, "bucket/d", true)
	want(t, err, nil)
	// A file of several extents, one behind the other.
	f := mustOpen(t, fs, mustFile(t, fs, dir.Ino, "pieces"), OpenWrite)
	pieces := []byte(bodies["d/pieces"])
	for off := 0; off < len(pieces); off += len(pieces) / 3 {
		_, err = f.WriteAt(bg, pieces[off:off+len(pieces)/3], int64(off))
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	want(t, f.Close(bg), nil)
	linked := mustLookup(t, fs, dir.Ino, "linked")
	_, err = fs.Link(bg, Root, linked.Ino, dir.Ino, "second")
	want(t, err, nil)
	want(t, fs.SetXattr(bg, Root, linked.Ino, Xattr{Name: "user.name", Value: []byte("value")}, 0), nil)
	_, err = fs.Symlink(bg, Root, dir.Ino, "sym", "linked")
	want(t, err, nil)
	want(t, fs.SetBucketAttr(bg, "bucket", "acl", []byte("private")), nil)
	want(t, fs.SetBucketPolicy(bg, "bucket", []byte(`{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/denied"}}`)), nil)
	want(t, fs.Users().Add(bg, users.User{Name: "user", UID: 7, Keys: []users.AccessKey{{ID: "KEY", Secret: "secret"}}}), nil)
	readers := iam.NewPolicy{Name: "readers", Text: []byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}`)}
	_, err = fs.IAM().CreatePolicy(bg, readers)
	want(t, err, nil)
	_, err = fs.IAM().CreateGroup(bg, "group", "")
	want(t, err, nil)
	want(t, fs.IAM().AddMember(bg, "group", "user"), nil)
	want(t, fs.IAM().Attach(bg, iam.Holder{Kind: iam.User, Name: "user"}, "readers"), nil)
	trust := []byte(`{"Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":"sts:AssumeRole"}}`)
	_, err = fs.IAM().CreateRole(bg, iam.NewRole{Name: "role", Trust: trust})
	want(t, err, nil)
	_, err = fs.IAM().CreateProvider(bg, "https://id.example", []string{"ogw"}, nil)
	want(t, err, nil)
	_, err = fs.StoreSecret(bg, "secret")
	want(t, err, nil)
	want(t, fs.UpdateSetting(bg, "name", func([]byte) ([]byte, error) { return []byte("value"), nil }), nil)
	_, err = fs.quarantine.Write(bg, cluster.BlobID{Content: 1 << 40, Seq: 4}, func(*record.Damaged) *record.Damaged {
		return &record.Damaged{Size: 5, Error: "damaged", By: "read", Inodes: []Ino{6}}
	})
	want(t, err, nil)
	// What waits for the collector.
	put(t, fs, "gone", strings.Repeat("gone ", 100))
	_, err = fs.DeleteObject(bg, ObjectName{"bucket", "gone"}, DeleteOptions{})
	want(t, err, nil)
}

// pair is one key and its value.
type pair struct{ key, value []byte }

// records are all of a store.
func records(t testing.TB, fs *FS) (list []pair) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		list = nil
		return r.Scan(nil, nil, cluster.ScanOptions{}, func(k, v []byte) error {
			list = append(list, pair{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	}), nil)
	return list
}

// useAll runs operations of every door over everything. wrong is called for
// an object with other bytes than it had.
func useAll(fs *FS, wrong func(key, got string)) {
	for key, body := range damagedBodies() {
		if got, err := readUpTo(fs, "bucket", key, int64(len(body))+1); err == nil && string(got) != body {
			wrong(key, string(got))
		}
		_, _ = fs.HeadObject(bg, ObjectName{"bucket", key}, GetOptions{Checksums: true})
		_, _, _ = fs.Whereis(bg, "bucket/"+key)
	}
	_, _ = fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 1000})
	_, _ = fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 2, Delimiter: "/"})
	_, _ = fs.ListBuckets(bg, "", 10)
	_, _, _ = fs.BucketUsage(bg, "bucket")
	_, _, _ = fs.BucketAttr(bg, "bucket", "acl")
	if page, err := fs.ListUploads(bg, "bucket", ListUploadsOptions{MaxUploads: 10}); err == nil {
		for _, u := range page.Uploads {
			_, _, _ = fs.ListParts(bg, ObjectName{"bucket", u.Key}.Upload(u.ID), 0, 10)
			_, _ = fs.CompleteUpload(bg, ObjectName{"bucket", u.Key}.Upload(u.ID), CompleteOptions{Parts: []CompletePart{{Number: 1}}})
		}
	}
	_, _ = fs.Users().List(bg)
	_, _, _ = fs.Users().ByKey(bg, "KEY")
	_, _ = fs.Settings(bg, "")
	_, _ = fs.StatFS(bg)
	useTree(fs, RootIno, 0)
}

// useTree walks through the POSIX operations, and changes what it finds.
func useTree(fs *FS, dir Ino, depth int) {
	const deepest = 6 // what is damaged may go round in circles
	if depth > deepest {
		return
	}
	var entries []DirEntry
	_ = fs.ReadDir(bg, Root, dir, ReadDirOptions{Attrs: true}, func(e DirEntry) error {
		entries = append(entries, e)
		return nil
	})
	for _, e := range entries {
		a, err := fs.Lookup(bg, Root, dir, e.Name)
		if err != nil {
			continue
		}
		if names, err := fs.ListXattr(bg, Root, a.Ino); err == nil {
			for _, name := range names {
				_, _ = fs.GetXattr(bg, Root, a.Ino, name)
			}
		}
		_, _ = fs.KeyOf(bg, a.Ino)
		_, _ = fs.Readlink(bg, a.Ino)
		if a.IsDir() {
			useTree(fs, a.Ino, depth+1)
			continue
		}
		if f, err := fs.Open(bg, Root, a.Ino, OpenRead|OpenWrite); err == nil {
			p := make([]byte, 64)
			_, _ = f.ReadAt(bg, p, 3)
			_, _ = f.SeekData(bg, 0)
			_ = f.Close(bg)
		}
	}
}

// removeEverything takes all away that still can be.
func removeEverything(fs *FS) {
	for key := range damagedBodies() {
		_, _ = fs.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
	}
	_, _ = fs.DeleteObjects(bg, "bucket", []string{"d/second", "d/sym", "gone", "open"})
	_ = fs.DeleteBucket(bg, "bucket")
	_, _ = fs.Collect(bg)
}

// openDamaged opens what an earlier one left, with nothing in its caches.
func openDamaged(disk *mem.Disk) (fs *FS, closeAll func() error, err error) {
	c := mem.New(mem.Options{Disk: disk})
	fs, err = Open(bg, c, Config{NoBackground: true, InlineBytes: damageInline, Now: later})
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return fs, func() error { return errors.Join(fs.Close(bg), c.Close()) }, nil
}

// tryDamaged uses, checks, repairs, uses and empties a store in which one
// record is another (nil: is gone). It returns the objects that had wrong
// bytes before the repair, and whether a check of the data found anything.
func tryDamaged(t testing.TB, key, value []byte) (wrong []string, found bool) {
	t.Helper()
	disk := mem.NewDisk()
	fs, closeAll, err := openDamaged(disk)
	want(t, err, nil)
	populate(t, fs)
	want(t, fs.update(bg, func(t cluster.Txn, _ *op) error {
		if value == nil {
			return t.Delete(key)
		}
		return t.Set(key, value)
	}), nil)
	_ = closeAll()
	if fs, closeAll, err = openDamaged(disk); err != nil {
		return nil, true // the superblock, or a counter
	}
	defer func() { _ = closeAll() }()
	useAll(fs, func(key, got string) { wrong = append(wrong, fmt.Sprintf("%.20q: %.40q", key, got)) })
	for i, o := range []CheckOptions{{Data: true}, {Repair: true, Data: true}, {Data: true}} {
		rep, err := fs.Check(bg, o)
		if err != nil {
			t.Errorf("record %q as %q: check: %v", key, value, err)
		}
		found = found || i == 0 && len(rep.Problems) > 0
	}
	useAll(fs, func(string, string) {})
	removeEverything(fs)
	return wrong, found
}

// TestDamagedRecords damages every record in turn.
func TestDamagedRecords(t *testing.T) {
	r := newSeed(t)
	fs := openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: damageInline, Now: later})
	populate(t, fs)
	tables := map[byte]bool{}
	all := records(t, fs)
	for _, p := range all {
		tables[p.key[0]] = true
		v := p.value
		for _, value := range [][]byte{
			{}, v[:len(v)/2], v[:max(0, len(v)-1)], append(bytes.Clone(v), 0), // every one is noticed
		} {
			wrong, found := tryDamaged(t, p.key, value)
			if inline := p.key[0] == record.TabExtent && record.ExtentKind(v[0]) == record.ExtentInline; inline && !bytes.Equal(v, value) && !found {
				t.Errorf("record %q as %q, it was %q: no check finds it", p.key, value, v)
			} else if len(wrong) > 0 && !inline {
				t.Errorf("record %q as %q, it was %q: wrong bytes in %q", p.key, value, v, wrong)
			}
		}
		flipped := bytes.Clone(v)
		if len(flipped) > 0 {
			flipped[r.IntN(len(flipped))] ^= byte(1 + r.IntN(255))
		}
		tryDamaged(t, p.key, flipped)
		tryDamaged(t, p.key, fill(r, r.IntN(100)))
		tryDamaged(t, p.key, all[r.IntN(len(all))].value)
		tryDamaged(t, p.key, nil)
	}
	for _, tab := range []byte{record.TabInode, record.TabDentry, record.TabXattr, record.TabLink, record.TabLongName, record.TabExtent, record.TabContent, record.TabRef,
		record.TabQueue, record.TabUpload, record.TabUploadID, record.TabPart, record.TabBucket, record.TabPolicy, record.TabPerms, record.TabManaged, record.TabGroup, record.TabRole, record.TabProvider, record.TabIAMName, record.TabBacklink, record.TabRevision, record.TabUser, record.TabUserName, record.TabUID, record.TabAccess, record.TabSetting, record.TabSecret, record.TabDamaged} {
		if !tables[tab] {
			t.Errorf("no record of the table %q", tab)
		}
	}
}

// TestRepairKeepsWhatMayBelong: what hangs on a record that cannot be read
// outlives a repair, so that all is well once the record is.
func TestRepairKeepsWhatMayBelong(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{InlineBytes: damageInline, Now: later})
	populate(t, fs)
	file, err := fs.Resolve(bg, Root, "bucket/d/e/blob", true)
	want(t, err, nil)
	want(t, fs.SetXattr(bg, Root, file.Ino, Xattr{Name: "user.color", Value: []byte("blue")}, 0), nil)
	key := record.InodeKey(file.Ino)
	var record []byte
	set := func(value []byte) {
		t.Helper()
		want(t, fs.update(bg, func(t cluster.Txn, _ *op) error { return t.Set(key, value) }), nil)
	}
	want(t, fs.view(bg, func(r cluster.Reader) error {
		b, err := r.Get(key)
		record = bytes.Clone(b)
		return err
	}), nil)
	set(record[:len(record)/2])
	for range 2 {
		rep, err := fs.Check(bg, CheckOptions{Repair: true, Data: true})
		want(t, err, nil)
		if len(rep.Problems) == 0 || rep.Repaired != 0 {
			t.Errorf("repaired %d of %+v", rep.Repaired, rep.Problems)
		}
	}
	_, err = fs.Collect(bg)
	want(t, err, nil)
	set(record)
	if got, _ := get(t, fs, "d/e/blob"); got != damagedBodies()["d/e/blob"] {
		t.Errorf("%d bytes are left", len(got))
	}
	if v, err := fs.GetXattr(bg, Root, file.Ino, "user.color"); err != nil || string(v) != "blue" {
		t.Errorf("attribute: %q, %v", v, err)
	}
	if rep, err := fs.Check(bg, CheckOptions{Data: true}); err != nil || len(rep.Problems) > 0 {
		t.Errorf("check of the whole: %v, %+v", err, rep.Problems)
	}
}

// TestDirectoryBelowItself: a damaged entry may make a tree endless. Listing
// it is an error, and a check reports it.
func TestDirectoryBelowItself(t *testing.T) {
	fs := openTestWith(t, mem.New(mem.Options{}), Config{Now: later})
	populate(t, fs)
	d, err := fs.Resolve(bg, Root, "bucket/d", true)
	want(t, err, nil)
	e := mustLookup(t, fs, d.Ino, "e")
	want(t, fs.update(bg, func(t cluster.Txn, _ *op) error {
		key := append(record.DentryPrefix(d.Ino), "e/"...)
		v, err := t.Get(key)
		if err != nil {
			return err
		}
		v = bytes.Clone(v)
		binary.BigEndian.PutUint64(v, uint64(d.Ino))
		return t.Set(key, v)
	}), nil)
	if _, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 1000}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("listing: %v", err)
	}
	if _, _, err := fs.BucketUsage(bg, "bucket"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("usage: %v", err)
	}
	if _, err := fs.Purge(bg, "bucket/"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("purge: %v", err)
	}
	rep, err := fs.Check(bg, CheckOptions{})
	want(t, err, nil)
	if !slices.ContainsFunc(rep.Problems, func(p Problem) bool { return strings.Contains(p.Detail, fmt.Sprint(e.Ino)) }) {
		t.Errorf("no check tells of inode %d: %+v", e.Ino, rep.Problems)
	}
}

// FuzzRecord puts anything in the place of any record.
func FuzzRecord(f *testing.F) {
	fs := openTestWith(f, mem.New(mem.Options{}), Config{InlineBytes: damageInline, Now: later})
	populate(f, fs)
	all := records(f, fs)
	for i, p := range all {
		f.Add(uint16(i), p.value)
	}
	f.Fuzz(func(t *testing.T, which uint16, value []byte) {
		if value == nil {
			value = []byte{}
		}
		tryDamaged(t, all[int(which)%len(all)].key, value)
	})
}
