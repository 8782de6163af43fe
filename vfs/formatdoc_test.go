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
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
	"ogw/vfs/seal"
)

// sampleNS is the time of the examples, Unix nanoseconds.
const sampleNS = 1700000000000000000

var sampleGrants = Grants{{Grantee: GranteeUser, User: "u1", Permission: PermRead}, {Grantee: GranteeEverybody, Permission: PermFullControl}}

// sample is a record as the codecs write it.
type sample struct{ key, value []byte }

// samples are the records that docs/format.md shows, by the names of its
// examples. Their fields have values that no other field has.
func samples(t *testing.T) map[string]sample {
	t.Helper()
	dir := record.Dentry{Name: "d", Dir: true, Ino: 17, Mode: ModeDirectory, DirBits: record.DirOpen | record.DirUnchosen | record.DirFlags | record.DirPolicy}
	file := record.Dentry{Name: "f", Ino: 18, Mode: ModeRegular}
	inline := record.Extent{Off: 0, Len: 3, Kind: record.ExtentInline, Data: []byte("abc")}
	blob := record.Extent{Off: 4096, Len: 300, Kind: record.ExtentBlob, Seq: 20, BlobOff: 7, BlobSize: 1000, BlobCRC: 0x1122334455667788}
	ref := record.Extent{Off: 8192, Len: 300, Kind: record.ExtentRef, Src: 21, SrcOff: 9}
	stage := record.Content{Staging: true, MadeNS: sampleNS}
	queue := func(e record.QueueEntry) sample { e.TimeNS = sampleNS; return sample{e.Key(), e.Encode()} }
	sums := []Checksum{{Algorithm: "CRC32", Value: []byte{1, 2, 3, 4}, Parts: 2}}
	upload := &record.Upload{ID: 23, Bucket: 24, Key: "k", Token: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, InitiatedNS: sampleNS,
		UID: 1000, GID: 100, By: record.Initiator{User: "u1", KeepsOwner: true}, Mode: 0o644, Stage: 5, Alg: "CRC32", Composite: true,
		Meta: ObjectMeta{ContentType: "a/b", Headers: map[string]string{"H": "h"}, User: map[string]string{"n": "v"}, Grants: sampleGrants}}
	completed := record.Completed{Digest: upload.Digest(), TimeNS: sampleNS, UID: 1000, User: "u1", Size: 300, Sum: [16]byte{0: 0xaa, 15: 0xbb}, NParts: 2, Checksums: sums}
	p := record.Part{Number: 2, Size: 3, Sum: [16]byte{0: 0xaa, 15: 0xbb}, ModifiedNS: sampleNS, HasCRC: true,
		CRC: 0x1122334455667788, Checksums: sums, Extents: []record.Extent{inline}}
	bucket := record.Bucket{"durability": []byte("sync"), record.GrantsAttr: record.EncodeGrants(sampleGrants)}
	bucketPolicy := record.BucketPolicy{Bucket: "b1", Text: []byte("{}")}
	perms := record.Permissions{Inline: []record.InlinePolicy{{Name: "p", Text: []byte("{}")}}, Attached: []string{"ANPA1"}, Boundary: "ANPA2", Groups: []string{"AGPA1"}}
	managed := record.ManagedPolicy{ID: "ANPA1", Name: "m", Path: "/", Description: "d", Created: sampleNS, Updated: sampleNS + 1, Default: 2, Next: 3,
		Versions: []record.PolicyVersion{{Number: 2, Created: sampleNS, Text: []byte("{}")}}}
	group := record.Group{ID: "AGPA1", Name: "g", Path: "/", Created: sampleNS}
	role := record.Role{ID: "AROA1", Name: "r", Path: "/", Description: "d", Created: sampleNS, UID: 10001, MaxSession: 3600, Trust: []byte("{}")}
	provider := record.Provider{URL: "id.example/x", Created: sampleNS, Audiences: []string{"ogw"}, Thumbprints: []string{"0f"}}
	notEmpty(t, role)
	notEmpty(t, provider)
	notEmpty(t, perms)
	notEmpty(t, managed)
	notEmpty(t, group)
	user := sampleUser(t)
	notEmpty(t, user, "sealed")
	notEmpty(t, *upload)
	notEmpty(t, p)
	notEmpty(t, completed)
	convert := record.Conversion{Table: 2, MaxUID: 1000, Next: []byte{record.TabInode}}
	once := record.Done{ID: [16]byte{0: 0x12, 1: 0x34, 15: 0xff}, Process: 0x1122334455667788, TimeNS: sampleNS}
	damaged := record.Damaged{Size: 1000, Path: "segments/1", Error: "bad", By: "scrub",
		Found: time.Unix(0, sampleNS).UTC(), Aside: true, Traced: true, Inodes: []Ino{17}}
	gateway := record.Gateway{ID: 30, Host: "h", PID: 7, Version: "v", Started: time.Unix(0, sampleNS).UTC(), Beside: true, Serves: true, Format: 3, Rules: record.OldestRules, Speaks: record.RulesVersion, Address: "h:9", Key: []byte{1, 2}, Restores: true, Ended: []uint64{29}, Renewed: 4}
	reads := record.Reads{First: 32, Epoch: 33, Contents: []ContentID{34}, Inodes: []Ino{17}}
	notEmpty(t, gateway)
	asked := record.PurgeRequest{By: 30, Path: "bucket/key"}
	purge, err := asked.Encode()
	want(t, err, nil)
	first, second := lock.Owner{Client: "c", ID: "a"}, lock.Owner{Client: "c", ID: "b"}
	locks := record.FileLocks{
		Holders: map[lock.Owner]record.LockHolder{first: {Gateway: 30, Closing: 37}, second: {Gateway: 30}},
		Waits:   map[uint64]uint64{38: 30},
		Ended:   []record.EndedWait{{Ticket: 39, Gateway: 30, Why: record.EndDeadlock}},
	}
	locks.Held[lock.Range] = []lock.Lock{{Owner: first, Type: lock.Exclusive, Start: 5, End: 8, PID: 7}}
	locks.Waiting = []lock.Waiter{{Space: lock.Flock, Lock: lock.Lock{Owner: second, End: lock.EOF, PID: 8}, Ticket: 38}}
	nfs := lock.Owner{Client: lock.RemotePrefix + "m s h", ID: "a"}
	remote := record.FileLocks{Holders: map[lock.Owner]record.LockHolder{nfs: {Untold: []record.UntoldGrant{{Ticket: 40, End: 8}}}}}
	remote.Held[lock.Range] = []lock.Lock{{Owner: nfs, End: 8, Era: 3}}
	reserved := record.FileLocks{Holders: map[lock.Owner]record.LockHolder{nfs: {}}}
	reserved.Held[lock.Share] = []lock.Lock{{Owner: nfs, Type: lock.Reserve(1, 2), End: lock.EOF, Era: 3}}
	fence, err := gateway.Encode()
	want(t, err, nil)
	damagedJSON, err := json.Marshal(damaged)
	if err != nil {
		t.Fatal(err)
	}
	marker := record.Restoring{Snapshot: "s1", Last: []byte{record.TabInode}}
	moving := record.Restoring{Snapshot: "1122334455667788", Moves: true, Recodes: true}
	super := record.Superblock{Version: FormatVersion, FSID: 0x1122334455667788, CreatedNS: sampleNS}
	moved := record.Moved{Super: super, To: "p", TimeNS: sampleNS + 1}
	names := nameOfHash(t)
	secret := bytes.Repeat([]byte{7}, StoreSecretBytes)
	number := func(name string, n uint64) sample {
		return sample{record.CounterKey(name), binary.BigEndian.AppendUint64(nil, n)}
	}
	return map[string]sample{
		"S":           {record.SuperKey(), super.Encode()},
		"S restoring": {record.SuperKey(), marker.Encode()},
		"S moving":    {record.SuperKey(), moving.Encode()},
		"S moved":     {record.SuperKey(), moved.Encode()},
		"C id":        number("id", 4097),
		"C uid":       number(record.CounterUID, 1001),
		"C swept":     number("swept", 99),
		"C skipped":   number(record.CounterSkipped, 1<<40),
		"C erase":     number(record.CounterErase, 1),
		"C convert":   {record.ConversionKey(), convert.Encode()},
		"i":           {record.InodeKey(17), sampleInode(t).Encode()},
		"n file":      {file.Key(RootIno), file.Value()},
		"n directory": {dir.Key(RootIno), dir.Value()},
		"t":           {record.DirTimeKey(17), record.EncodeDirTime(TimeNS(sampleNS), sampleNS+1)},
		"t far":       {record.DirTimeKey(17), record.EncodeDirTime(Time{Sec: 1e10, Nsec: 1}, sampleNS+1)},
		"x":           {record.XattrKey(17, "user.a"), []byte("value")},
		"l":           {record.LinkKey(17, RootIno, "f"), []byte{}},
		"h":           names,
		"e inline":    {record.ExtentKey(19, inline.Off), inline.Encode()},
		"e blob":      {record.ExtentKey(19, blob.Off), blob.Encode()},
		"e reference": {record.ExtentKey(19, ref.Off), ref.Encode()},
		"s staging":   {record.ContentKey(19), stage.Encode()},
		"s shared":    {record.ContentKey(19), record.Content{Held: true}.Encode()},
		"s dropped":   {record.ContentKey(19), record.Content{Version: 5}.Encode()},
		"r":           {record.RefKey(21, 19), binary.BigEndian.AppendUint64(nil, 0x0102030405060708)},
		"q content":   queue(record.QueueEntry{Kind: record.QueueContent, Content: 19}),
		"q beside":    queue(record.QueueEntry{Kind: record.QueueContent, Content: 19, Version: 5}),
		"q blob":      queue(record.QueueEntry{Kind: record.QueueBlob, Content: 19, Seq: 20, Origin: 4096, Size: 1000}),
		"q hold":      queue(record.QueueEntry{Kind: record.QueueHold, Content: 19, Seq: 21}),
		"q upload":    queue(record.QueueEntry{Kind: record.QueueUpload, Content: 23}),
		"o":           {record.OrphanKey(17), record.EncodeOrphan(0x1122334455667788, sampleNS)},
		"m":           {upload.StoreKey(), upload.Encode()},
		"M":           {record.UploadIDKey(23), upload.StoreKey()},
		"c":           {record.CompletedKey(0x1234), completed.Encode()},
		"p":           {record.PartKey(23, 2), p.Encode()},
		"b":           {record.BucketKey(24), bucket.Encode()},
		"y":           {record.PolicyKey(24), bucketPolicy.Encode()},
		"A":           {record.PermissionsKey("u1"), perms.Encode()},
		"P":           {record.ManagedPolicyKey("ANPA1"), managed.Encode()},
		"G":           {record.GroupKey("AGPA1"), group.Encode()},
		"a":           {record.RoleKey("AROA1"), role.Encode()},
		"w":           {record.ProviderKey(provider.URL), provider.Encode()},
		"N":           {record.IAMNameKey(record.GroupKind, "G"), []byte("AGPA1")},
		"B":           {record.BacklinkKey("AGPA1", "u1"), []byte{1}},
		"R":           {record.RevisionKey(), bytes.Repeat([]byte{7}, 16)},
		"U":           {record.UserKey("u1"), user.Encode(nil)},
		"u":           {record.UserNameKey("alice"), []byte("u1")},
		"I":           {record.UIDKey(1000), []byte("u1")},
		"k":           {record.AccessIDKey("AK"), []byte("u1")},
		"d":           {record.OnceKey(0x1234), once.Encode()},
		"g":           {record.SettingKey("scrub"), []byte("{}")},
		"K":           {record.StoreSecretKey("nfs/handles"), record.EncodeStoreSecret(nil, "nfs/handles", secret)},
		"z":           {record.DamagedKey(cluster.BlobID{Content: 19, Seq: 20}), damagedJSON},
		"F":           {record.FenceKey(30), fence},
		"V":           {record.ReadKey(30), reads.Encode()},
		"Y":           {record.PurgeKey(35), purge},
		"L":           {record.LockKey(17), locks.Encode()},
		"L remote":    {record.LockKey(18), remote.Encode()},
		"L share":     {record.LockKey(18), reserved.Encode()},
		"X":           {record.LockerKey(nfs.Client, 18), record.EncodeLocker(1)},
		"W":           {record.WaitKey(lock.Owner{Client: "c", ID: "b"}), record.EncodeWaits([]uint64{17})},
		"D":           {record.Doubt{Blob: cluster.BlobID{Content: 19, Seq: 20}, Size: 1000, CRC: 0x1122334455667788}.Key(), []byte{}},
		"H":           {record.BeatKey(30), record.Beat{Number: 31}.Encode()},
	}
}

// sampleUser is a user with every field, one of a later program included.
func sampleUser(t *testing.T) record.User {
	t.Helper()
	gone := record.User{ID: "u1"}
	gone.Remove(sampleNS + 1)
	var later record.Encoder
	later.Field(9, []byte("x"))
	u, err := record.DecodeUser("u1", append(gone.Encode(nil), later.B...), nil)
	want(t, err, nil)
	u.Name, u.UID, u.GID, u.Admin, u.Founder, u.Created = "alice", 1000, 100, true, true, sampleNS
	u.Keys = []record.AccessKey{{ID: "AK", Secret: "secret", Created: sampleNS}}
	return u
}

// sampleInode is an inode with every field.
func sampleInode(t *testing.T) *record.Inode {
	t.Helper()
	n := &record.Inode{Ino: 17, Gen: 1, Mode: ModeRegular | 0o644, Nlink: 2, UID: 1000, GID: 100, Rdev: 0x501,
		Flags: record.FlagXattrs | record.FlagCRC | record.FlagVerf | record.FlagObject | record.FlagLinks | record.FlagGrants | record.FlagChosen,
		Size:  3, Parent: 16, Version: 4, Content: 19, Used: 5, Epoch: 6,
		Atime: Time{Sec: 1e10, Nsec: 1}, Mtime: Time{Sec: -2e10, Nsec: 2}, CtimeNS: sampleNS, BtimeNS: sampleNS + 1e9,
		Name: "f", Target: "t", CRC: 0x1122334455667788, Verf: 0x0102030405060708, Grants: sampleGrants,
		Stored: record.Stored{{Keeper: 0x1122334455667788, Seq: 9, UpTo: record.StoredWhole}}}
	n.SetFileFlags(uint32(FlagImmutable | FlagNoDump))
	n.Object = record.Object{Sum: bytes.Repeat([]byte{0xee}, 16), NParts: 2, ContentType: "a/b", Headers: map[string]string{"H": "h"},
		Checksums: []Checksum{{Algorithm: "CRC32", Value: []byte{1, 2, 3, 4}, Parts: 2}}, Parts: []ObjectPart{{Number: 7, Size: 8, Checksum: []byte{9}}}}
	notEmpty(t, *n)
	notEmpty(t, n.Object)
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
	_, err := fs.PutObject(bg, ObjectName{"bucket", long}, strings.NewReader(""), PutOptions{Size: -1})
	want(t, err, nil)
	from, to := record.Table(record.TabLongName)
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
	secret, err := record.DecodeStoreSecret(keys, "nfs/handles", documented["K sealed"].Value)
	if err != nil || !bytes.Equal(secret, bytes.Repeat([]byte{7}, StoreSecretBytes)) {
		t.Errorf("%x, %v; sealed now: %x", secret, err, record.EncodeStoreSecret(keys, "nfs/handles", bytes.Repeat([]byte{7}, StoreSecretBytes)))
	}
}

// tableLetters are the constants of keys.go that name tables.
func tableLetters(t *testing.T) map[string]byte {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "internal/record/keys.go", nil, 0)
	want(t, err, nil)
	letters := map[string]byte{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Tab") && len(spec.Values) == 1 {
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
