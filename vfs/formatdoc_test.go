package vfs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/integration/testenv/formatdoc"
	"ogw/vfs/seal"
)

// sampleNS is the time of the examples, Unix nanoseconds.
const sampleNS = 1700000000000000000

// sample is a record as the codecs write it.
type sample struct{ key, value []byte }

// samples are the records that docs/format.md shows, by the names of its
// examples. Their fields have values that no other field has.
func samples(t *testing.T) map[string]sample {
	t.Helper()
	dir := dentry{name: "d", dir: true, ino: 17, mode: ModeDirectory, tells: tellsOpen | tellsUnchosen | tellsFlags}
	file := dentry{name: "f", ino: 18, mode: ModeRegular}
	inline := extent{off: 0, len: 3, kind: extentInline, data: []byte("abc")}
	blob := extent{off: 4096, len: 300, kind: extentBlob, seq: 20, blobOff: 7, blobSize: 1000, blobCRC: 0x1122334455667788}
	ref := extent{off: 8192, len: 300, kind: extentRef, src: 21, srcOff: 9}
	stage := contentRecord{staging: true, madeNS: sampleNS}
	queue := func(e queueEntry) sample { e.dueNS = sampleNS; return sample{e.key(), e.encode()} }
	sums := []Checksum{{Algorithm: "CRC32", Value: []byte{1, 2, 3, 4}, Parts: 2}}
	upload := &uploadRecord{id: 23, bucket: 24, key: "k", token: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, initiatedNS: sampleNS,
		owner: Cred{UID: 1000, GID: 100}, by: initiator{"u1", true}, mode: 0o644, stage: 5, alg: "CRC32", composite: true,
		meta: ObjectMeta{ContentType: "a/b", Headers: map[string]string{"H": "h"}, User: map[string]string{"n": "v"}, Grants: sampleGrants}}
	p := part{number: 2, size: 3, sum: [16]byte{0: 0xaa, 15: 0xbb}, modifiedNS: sampleNS, hasCRC: true,
		crc: 0x1122334455667788, checksums: sums, extents: []extent{inline}}
	bucket := bucketRecord{"durability": []byte("sync"), attrGrants: sampleGrants.encode()}
	user := User{ID: "u1", Name: "alice", UID: 1000, GID: 100, Admin: true, Founder: true, Created: sampleNS, removed: sampleNS + 1,
		Keys: []AccessKey{{"AK", "secret", sampleNS}}, later: []byte{9, 1, 'x'}}
	notEmpty(t, user, "locked")
	notEmpty(t, *upload)
	notEmpty(t, p)
	convert := convertState{table: 2, maxUID: 1000, next: []byte{tabInode}}
	token := Token{ID: [16]byte{0: 0x12, 1: 0x34, 15: 0xff}}
	damaged := damagedRecord{Size: 1000, Path: "segments/1", Error: "bad", By: "scrub",
		Found: time.Unix(0, sampleNS).UTC(), Aside: true, Traced: true, Inodes: []Ino{17}}
	damagedJSON, err := json.Marshal(damaged)
	if err != nil {
		t.Fatal(err)
	}
	marker := Restore{last: []byte{tabInode}}
	marker.cfg.Snapshot = "s1"
	names := nameOfHash(t)
	secret := bytes.Repeat([]byte{7}, StoreSecretBytes)
	number := func(name string, n uint64) sample {
		return sample{counterKey(name), binary.BigEndian.AppendUint64(nil, n)}
	}
	return map[string]sample{
		"S":           {superKey(), (&superblock{FormatVersion, 0x1122334455667788, sampleNS}).encode()},
		"S restoring": {superKey(), marker.marker()},
		"C id":        number("id", 4097),
		"C uid":       number(counterUID, 1001),
		"C swept":     number("swept", 99),
		"C erase":     number(counterErase, 1),
		"C convert":   {convertKey(), convert.encode()},
		"i":           {inodeKey(17), sampleInode(t).encode()},
		"n file":      {file.key(RootIno), file.value()},
		"n directory": {dir.key(RootIno), dir.value()},
		"t":           {dirTimeKey(17), encodeDirTime(TimeNS(sampleNS), sampleNS+1)},
		"t far":       {dirTimeKey(17), encodeDirTime(Time{1e10, 1}, sampleNS+1)},
		"x":           {xattrKey(17, "user.a"), []byte("value")},
		"l":           {linkKey(17, RootIno, "f"), []byte{}},
		"h":           names,
		"e inline":    {extentKey(19, inline.off), inline.encode()},
		"e blob":      {extentKey(19, blob.off), blob.encode()},
		"e reference": {extentKey(19, ref.off), ref.encode()},
		"s staging":   {contentKey(19), stage.encode()},
		"s shared":    {contentKey(19), contentRecord{held: true}.encode()},
		"r":           {refKey(21, 19), []byte{}},
		"q content":   queue(queueEntry{kind: queueContent, content: 19}),
		"q blob":      queue(queueEntry{kind: queueBlob, content: 19, seq: 20, origin: 4096, size: 1000}),
		"q upload":    queue(queueEntry{kind: queueUpload, content: 23}),
		"o":           {orphanKey(17), (&op{fs: &FS{instance: 0x1122334455667788}, nowNS: sampleNS}).orphanValue()},
		"m":           {upload.storeKey(), upload.encode()},
		"M":           {uploadIDKey(23), upload.storeKey()},
		"p":           {partKey(23, 2), p.encode()},
		"b":           {bucketKey(24), bucket.encode()},
		"U":           {userKey("u1"), user.encode(nil)},
		"u":           {userNameKey("alice"), []byte("u1")},
		"I":           {uidKey(1000), []byte("u1")},
		"k":           {accessKey("AK"), []byte("u1")},
		"d":           {token.key(), token.record(0x1122334455667788, sampleNS)},
		"g":           {settingKey("scrub"), []byte("{}")},
		"K":           {storeSecretKey("nfs/handles"), encodeStoreSecret(nil, "nfs/handles", secret)},
		"z":           {damagedKey(cluster.BlobID{Content: 19, Seq: 20}), damagedJSON},
	}
}

var sampleGrants = Grants{{GranteeUser, "u1", PermRead}, {GranteeEverybody, "", PermFullControl}}

// sampleInode is an inode with every field.
func sampleInode(t *testing.T) *inode {
	t.Helper()
	n := &inode{ino: 17, gen: 1, mode: ModeRegular | 0o644, nlink: 2, uid: 1000, gid: 100, rdev: 0x501,
		flags: flagXattrs | flagCRC | flagVerf | flagObject | flagLinks | flagGrants | flagChosen |
			inodeFlags(FlagImmutable|FlagNoDump)<<fileFlagsShift,
		size: 3, parent: 16, version: 4, content: 19, used: 5, epoch: 6,
		atime: Time{1e10, 1}, mtime: Time{-2e10, 2}, ctimeNS: sampleNS, btimeNS: sampleNS + 1e9,
		name: "f", target: "t", crc: 0x1122334455667788, verf: 0x0102030405060708, grants: sampleGrants}
	n.object = objectPart{sum: bytes.Repeat([]byte{0xee}, 16), nparts: 2, contentType: "a/b", headers: map[string]string{"H": "h"},
		checksums: []Checksum{{Algorithm: "CRC32", Value: []byte{1, 2, 3, 4}, Parts: 2}}, parts: []ObjectPart{{7, 8, []byte{9}}}}
	notEmpty(t, *n)
	notEmpty(t, n.object)
	return n
}

// notEmpty fails when a field of a sample has no value: the example would not
// show it.
func notEmpty(t *testing.T, record any, except ...string) {
	t.Helper()
	v := reflect.ValueOf(record)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(except, name) {
			t.Errorf("the sample of %T has no %s", record, name)
		}
	}
}

// nameOfHash is the record of a long name, as the namespace writes it.
func nameOfHash(t *testing.T) sample {
	t.Helper()
	fs := openTest(t, mem.New(mem.Options{}))
	long := strings.Repeat("n", 300)
	bucketFS(t, fs)
	_, err := fs.PutObject(bg, "bucket", long, strings.NewReader(""), PutOptions{Size: -1})
	want(t, err, nil)
	from, to := table(tabLongName)
	var s sample
	want(t, fs.view(bg, func(r cluster.Reader) error {
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			s = sample{bytes.Clone(k), bytes.Clone(v)}
			return nil
		})
	}), nil)
	if len(s.key) != 1+8+20 || string(s.value) != long {
		t.Fatalf("the record of a long name: %x = %q", s.key, s.value)
	}
	binary.BigEndian.PutUint64(s.key[1:], 17)
	return s
}

// docs/format.md shows each record byte for byte as the codecs write it, and
// every table.
func TestFormatDocument(t *testing.T) {
	const path = "../docs/format.md"
	documented, err := formatdoc.Read(path)
	want(t, err, nil)
	all := samples(t)
	tables := map[byte]bool{}
	for name, s := range all {
		tables[s.key[0]] = true
		e, ok := documented[name]
		if !ok {
			t.Errorf("%s has no example %s:\n    key %x\n    %x", path, name, s.key, s.value)
			continue
		}
		if !bytes.Equal(e.Key, s.key) || !bytes.Equal(e.Value, s.value) {
			t.Errorf("%s, example %s:\n    key %x\n    %x\nthe program stores\n    key %x\n    %x", path, name, e.Key, e.Value, s.key, s.value)
		}
	}
	for name, e := range documented {
		if _, ok := all[name]; !ok && len(e.Key) > 0 && e.Key[0] != 0xff && name != "K sealed" {
			t.Errorf("%s has an example %s, which this test does not know", path, name)
		}
	}
	for name, tab := range tableLetters(t) {
		if !tables[tab] {
			t.Errorf("%s (%c) has no example", name, tab)
		}
	}
}

// The example of a sealed secret opens with its key.
func TestFormatDocumentSealed(t *testing.T) {
	documented, err := formatdoc.Read("../docs/format.md")
	want(t, err, nil)
	keys, err := seal.Parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
	want(t, err, nil)
	secret, err := decodeStoreSecret(keys, "nfs/handles", documented["K sealed"].Value)
	if err != nil || !bytes.Equal(secret, bytes.Repeat([]byte{7}, StoreSecretBytes)) {
		t.Errorf("%x, %v; sealed now: %x", secret, err, encodeStoreSecret(keys, "nfs/handles", bytes.Repeat([]byte{7}, StoreSecretBytes)))
	}
}

// tableLetters are the constants of keys.go that name tables.
func tableLetters(t *testing.T) map[string]byte {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	want(t, err, nil)
	letters := map[string]byte{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "tab") && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.CHAR {
				r, _, _, err := strconv.UnquoteChar(lit.Value[1:], '\'')
				want(t, err, nil)
				letters[spec.Names[0].Name] = byte(r)
			}
		}
		return true
	})
	if len(letters) < 20 {
		t.Fatalf("keys.go has %d tables", len(letters))
	}
	return letters
}
