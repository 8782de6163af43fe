package vfs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// flagStage is a bucket with something of each kind under flags.
type flagStage struct {
	fs     *FS
	bucket Ino
	file   Ino // "file", holds "text"
	dir    Ino // "dir", with a file "in" and a directory "sub"
}

func newFlagStage(t *testing.T, fs *FS) *flagStage {
	t.Helper()
	info, err := fs.CreateBucket(bg, "bucket", Root)
	want(t, err, nil)
	s := &flagStage{fs: fs, bucket: info.Ino}
	put := func(key string) {
		_, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader("text"), PutOptions{Size: -1})
		want(t, err, nil)
	}
	put("file")
	put("dir/in")
	put("other")
	s.file = mustLookup(t, fs, s.bucket, "file").Ino
	s.dir = mustLookup(t, fs, s.bucket, "dir").Ino
	_, err = fs.Mkdir(bg, Root, s.dir, "sub", 0o755)
	want(t, err, nil)
	return s
}

func (s *flagStage) set(t *testing.T, ino Ino, f FileFlags) {
	t.Helper()
	want(t, s.fs.SetFlags(bg, Root, ino, f), nil)
}

// flagAct is one change, and whether it is let through by the flags of a file or
// of the directory in which it happens.
type flagAct struct {
	name              string
	immutable, append bool
	do                func(s *flagStage) error
}

func putFlagged(s *flagStage, key string) error {
	_, err := s.fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader("new"), PutOptions{Size: -1})
	return err
}

func openAs(s *flagStage, flags OpenFlags) error {
	f, err := s.fs.Open(bg, CheckedCred(0, 0), s.file, flags)
	if err == nil {
		err = f.Close(bg)
	}
	return err
}

func setAs(s *flagStage, ino Ino, set SetAttr) error {
	_, err := s.fs.SetAttr(bg, Root, ino, set)
	return err
}

// fileActs are changes of the file "file".
var fileActs = []flagAct{
	{"write", false, false, func(s *flagStage) error { return writeOpen(s, OpenWrite, 0, "T") }},
	{"append", false, true, func(s *flagStage) error { return writeOpen(s, OpenWrite|OpenAppend, 0, "T") }},
	{"write at the end", false, true, func(s *flagStage) error { return writeOpen(s, OpenWrite, 4, "T") }},
	{"write again and on", false, true, func(s *flagStage) error { return writeOpen(s, OpenWrite, 2, "xtT") }},
	{"open to write anywhere", false, false, func(s *flagStage) error { return openAs(s, OpenWrite|OpenAnywhere) }},
	{"open to cut", false, false, func(s *flagStage) error { return openAs(s, OpenRead|OpenTrunc) }},
	{"open to read", true, true, func(s *flagStage) error { return openAs(s, OpenRead) }},
	{"truncate", false, false, func(s *flagStage) error { return setAs(s, s.file, SetAttr{Size: ptr(int64(1))}) }},
	{"grow", false, false, func(s *flagStage) error { return setAs(s, s.file, SetAttr{Size: ptr(int64(100))}) }},
	{"chmod", false, false, func(s *flagStage) error { return setAs(s, s.file, SetAttr{Mode: ptr(uint32(0o600))}) }},
	{"chown", false, false, func(s *flagStage) error { return setAs(s, s.file, SetAttr{UID: ptr(uint32(1))}) }},
	{"times", false, false, func(s *flagStage) error { return setAs(s, s.file, SetAttr{Mtime: &Time{Sec: 1, Nsec: 0}}) }},
	{"touch", false, true, func(s *flagStage) error { return setAs(s, s.file, SetAttr{AtimeNow: true, MtimeNow: true}) }},
	{"setxattr", false, false, func(s *flagStage) error {
		return s.fs.SetXattr(bg, Root, s.file, Xattr{Name: "user.a", Value: []byte("b")}, 0)
	}},
	{"removexattr", false, false, func(s *flagStage) error { return skipNoAttr(s.fs.RemoveXattr(bg, Root, s.file, "user.a")) }},
	{"link", false, false, func(s *flagStage) error { _, err := s.fs.Link(bg, Root, s.file, s.bucket, "second"); return err }},
	{"rename", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.bucket, "file"}, EntryName{s.bucket, "x"}, 0)
	}},
	{"rename onto", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.bucket, "other"}, EntryName{s.bucket, "file"}, 0)
	}},
	{"exchange", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.bucket, "other"}, EntryName{s.bucket, "file"}, RenameExchange)
	}},
	{"unlink", false, false, func(s *flagStage) error { return s.fs.Unlink(bg, Root, s.bucket, "file") }},
	{"PUT", false, false, func(s *flagStage) error { return putFlagged(s, "file") }},
	{"DELETE", false, false, func(s *flagStage) error {
		_, err := s.fs.DeleteObject(bg, ObjectName{"bucket", "file"}, DeleteOptions{})
		return err
	}},
	{"DELETE of many", false, false, func(s *flagStage) error { return deleteMany(s, "file") }},
	{"COPY onto", false, false, func(s *flagStage) error {
		_, err := s.fs.CopyObject(bg, ObjectName{"bucket", "other"}, ObjectName{"bucket", "file"}, CopyOptions{})
		return err
	}},
	{"upload onto", false, false, func(s *flagStage) error {
		_, err := s.fs.CreateUpload(bg, ObjectName{"bucket", "file"}, PutOptions{}, "", false)
		return err
	}},
	{"tagging", false, false, func(s *flagStage) error { return s.fs.SetObjectTags(bg, ObjectName{"bucket", "file"}, "h=") }},
	{"object ACL", false, false, func(s *flagStage) error { return s.fs.SetObjectGrants(bg, ObjectName{"bucket", "file"}, nil) }},
	{"punch", false, false, func(s *flagStage) error { return allocate(s, AllocPunchHole|AllocKeepSize) }},
	{"allocate", false, true, func(s *flagStage) error { return allocate(s, 0) }},
	{"copy range", false, false, func(s *flagStage) error { return copyOnto(s, s.file) }},
	{"clear the flag of others", false, false, func(s *flagStage) error { return s.fs.SetFlags(bg, NewCred(7, 0), s.file, 0) }},
	{"read", true, true, func(s *flagStage) error {
		_, err := readObject(s.fs, "bucket", "file")
		return err
	}},
}

func skipNoAttr(err error) error {
	if errors.Is(err, ErrNoAttr) {
		return nil
	}
	return err
}

func deleteMany(s *flagStage, key string) error {
	r, err := s.fs.DeleteObjects(bg, "bucket", []string{"gone", key})
	if err != nil {
		return err
	}
	return r[1].Err
}

// writeOpen writes through a File that was opened before the flag was set.
func writeOpen(s *flagStage, flags OpenFlags, off int64, text string) error {
	was := s.fs.mustFlags(s.file)
	if err := s.fs.SetFlags(bg, Root, s.file, 0); err != nil {
		return err
	}
	f, err := s.fs.Open(bg, Root, s.file, flags)
	if err != nil {
		return err
	}
	if err := s.fs.SetFlags(bg, Root, s.file, was); err != nil {
		return err
	}
	_, err = f.WriteAt(bg, []byte(text), off)
	return errors.Join(err, f.Close(bg))
}

func (fs *FS) mustFlags(ino Ino) FileFlags {
	a, err := fs.GetAttr(bg, ino)
	if err != nil {
		panic(err)
	}
	return a.Flags
}

func allocate(s *flagStage, mode AllocMode) error {
	f, err := s.fs.Open(bg, Root, s.file, OpenWrite|OpenFlagged)
	if err != nil {
		return err
	}
	err = f.Allocate(bg, mode, 0, 10)
	return errors.Join(err, f.Close(bg))
}

func copyOnto(s *flagStage, ino Ino) error {
	other, err := s.fs.Lookup(bg, Root, s.bucket, "other")
	if err != nil {
		return err
	}
	from, err := s.fs.Open(bg, Root, other.Ino, OpenRead)
	if err != nil {
		return err
	}
	to, err := s.fs.Open(bg, Root, ino, OpenWrite|OpenFlagged)
	if err != nil {
		return errors.Join(err, from.Close(bg))
	}
	_, err = to.CopyRange(bg, 0, from, 1, 2)
	return errors.Join(err, to.Close(bg), from.Close(bg))
}

// dirActs are changes in and of the directory "dir".
var dirActs = []flagAct{
	{"create", false, true, func(s *flagStage) error {
		_, _, _, err := s.fs.Create(bg, Root, s.dir, "new", CreateOptions{NoOpen: true})
		return err
	}},
	{"tmpfile", false, true, func(s *flagStage) error {
		_, f, err := s.fs.OpenTemp(bg, CheckedCred(0, 0), s.dir, 0o600, OpenWrite)
		if err == nil {
			err = f.Close(bg)
		}
		return err
	}},
	{"mkdir", false, true, func(s *flagStage) error { _, err := s.fs.Mkdir(bg, Root, s.dir, "new", 0o755); return err }},
	{"link in", false, true, func(s *flagStage) error { _, err := s.fs.Link(bg, Root, s.file, s.dir, "new"); return err }},
	{"rename in", false, true, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.bucket, "other"}, EntryName{s.dir, "new"}, 0)
	}},
	{"rename out", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.dir, "in"}, EntryName{s.bucket, "new"}, 0)
	}},
	{"rename within", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.dir, "in"}, EntryName{s.dir, "new"}, 0)
	}},
	{"unlink", false, false, func(s *flagStage) error { return s.fs.Unlink(bg, Root, s.dir, "in") }},
	{"rmdir", false, false, func(s *flagStage) error { return s.fs.Rmdir(bg, Root, s.dir, "sub") }},
	{"rename of itself", false, false, func(s *flagStage) error {
		return s.fs.Rename(bg, Root, EntryName{s.bucket, "dir"}, EntryName{s.bucket, "x"}, 0)
	}},
	{"chmod", false, false, func(s *flagStage) error { return setAs(s, s.dir, SetAttr{Mode: ptr(uint32(0o700))}) }},
	{"PUT of a new key", false, true, func(s *flagStage) error { return putFlagged(s, "dir/new") }},
	{"PUT below", false, true, func(s *flagStage) error { return putFlagged(s, "dir/new/deep") }},
	{"PUT over a key", true, true, func(s *flagStage) error { return putFlagged(s, "dir/in") }},
	{"PUT of its own key", false, false, func(s *flagStage) error { return putFlagged(s, "dir/") }},
	{"PUT in a directory of it", true, true, func(s *flagStage) error { return putFlagged(s, "dir/sub/new") }},
	{"DELETE", false, false, func(s *flagStage) error {
		_, err := s.fs.DeleteObject(bg, ObjectName{"bucket", "dir/in"}, DeleteOptions{})
		return err
	}},
	{"DELETE of many", false, false, func(s *flagStage) error { return deleteMany(s, "dir/in") }},
	{"DELETE of its key", false, false, func(s *flagStage) error { return deleteMany(s, "dir/") }},
	{"DELETE of a directory in it", false, false, func(s *flagStage) error { return deleteMany(s, "dir/sub/") }},
	{"rm of what is not there", true, true, func(s *flagStage) error { return deleteMany(s, "dir/none") }},
}

func TestFileFlagsHold(t *testing.T) {
	run := func(t *testing.T, act *flagAct, flag FileFlags, of func(*flagStage) Ino, may bool) {
		s := newFlagStage(t, openTest(t, mem.New(mem.Options{})))
		s.set(t, of(s), flag)
		err := act.do(s)
		switch {
		case may && err != nil, !may && (!errors.Is(err, ErrPerm) || act.name != "clear the flag of others" && !errors.Is(err, ErrProtected)):
			t.Errorf("error %v, want success: %v", err, may)
		}
		s.set(t, of(s), 0)
		if rep, err := s.fs.Check(bg, CheckOptions{}); err != nil || len(rep.Problems) > 0 {
			t.Errorf("check: %+v, %v", rep, err)
		}
		if may {
			return
		}
		if err := act.do(s); err != nil && act.name != "clear the flag of others" {
			t.Errorf("without the flag: %v", err)
		}
	}
	for name, table := range map[string][]flagAct{"file": fileActs, "directory": dirActs} {
		of := func(s *flagStage) Ino { return s.file }
		if name == "directory" {
			of = func(s *flagStage) Ino { return s.dir }
		}
		for i := range table {
			act := &table[i]
			t.Run(fmt.Sprintf("%s/immutable/%s", name, act.name), func(t *testing.T) { run(t, act, FlagImmutable, of, act.immutable) })
			t.Run(fmt.Sprintf("%s/append/%s", name, act.name), func(t *testing.T) { run(t, act, FlagAppend, of, act.append) })
		}
	}
}

// The root and a bucket have flags, too.
func TestFlagsAtTheTop(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	s.set(t, RootIno, FlagImmutable)
	_, err := s.fs.CreateBucket(bg, "second", Root)
	want(t, err, ErrProtected)
	_, err = s.fs.PutObject(bg, ObjectName{"", "third/key"}, strings.NewReader(""), PutOptions{Size: -1})
	want(t, err, ErrProtected)
	want(t, s.fs.DeleteBucket(bg, "bucket"), ErrBucketNotEmpty)
	s.set(t, RootIno, 0)
	empty, err := s.fs.CreateBucket(bg, "empty", Root)
	want(t, err, nil)
	s.set(t, empty.Ino, FlagAppend)
	want(t, s.fs.DeleteBucket(bg, "empty"), ErrProtected)
	want(t, s.fs.SetBucketGrants(bg, "empty", sampleGrants), ErrProtected)
	s.set(t, empty.Ino, 0)
	s.set(t, RootIno, FlagAppend)
	want(t, s.fs.DeleteBucket(bg, "empty"), ErrProtected)
	s.set(t, RootIno, 0)
	want(t, s.fs.DeleteBucket(bg, "empty"), nil)
}

// A directory that S3 implied does not take its entry out of one that keeps its
// entries.
func TestImpliedStaysInHeld(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	want(t, putFlagged(s, "dir/implied/key"), nil)
	s.set(t, s.dir, FlagAppend)
	want(t, deleteMany(s, "dir/implied/key"), nil)
	mustLookup(t, s.fs, s.dir, "implied")
}

func TestWhoSetsFlags(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	alice, bob := NewCred(aliceUID, 0), NewCred(bobUID, 0)
	want(t, setAs(s, s.file, SetAttr{UID: ptr(uint32(aliceUID))}), nil)
	want(t, s.fs.SetFlags(bg, alice, s.file, FlagNoDump), nil)
	want(t, s.fs.SetFlags(bg, bob, s.file, 0), ErrPerm)
	want(t, s.fs.SetFlags(bg, alice, s.file, FlagNoDump|FlagAppend), ErrPerm)
	s.set(t, s.file, FlagImmutable)
	want(t, s.fs.SetFlags(bg, alice, s.file, 0), ErrPerm)
	want(t, s.fs.SetFlags(bg, Root, s.file, FlagImmutable|FlagNoDump), ErrProtected)
	want(t, s.fs.SetFlags(bg, Root, s.file, 0), nil)
	want(t, s.fs.SetFlags(bg, Root, s.file, 1<<10), ErrNotSupported)
	link, err := s.fs.Symlink(bg, Root, s.bucket, "link", "file")
	want(t, err, nil)
	want(t, s.fs.SetFlags(bg, Root, link.Ino, FlagNoDump), ErrNotSupported)
}

// What is made in a directory inherits what forbids nothing.
func TestInheritedFlags(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	s.set(t, s.dir, FlagNoDump|FlagNoAtime|FlagAppend)
	a, err := s.fs.Mkdir(bg, Root, s.dir, "new", 0o755)
	want(t, err, nil)
	if a.Flags != FlagNoDump|FlagNoAtime {
		t.Errorf("flags %b", a.Flags)
	}
}

// Bytes that were acknowledged before the flag are stored; of another process
// they are lost, and the writer gets an error.
func TestFlagsAfterWrites(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	f, err := s.fs.Open(bg, Root, s.file, OpenRead|OpenWrite)
	want(t, err, nil)
	_, err = f.WriteAt(bg, []byte("TEXT"), 0)
	want(t, err, nil)
	s.set(t, s.file, FlagImmutable)
	_, err = f.WriteAt(bg, []byte("xxxx"), 0)
	want(t, err, ErrProtected)
	want(t, f.Close(bg), nil)
	b, err := readObject(s.fs, "bucket", "file")
	if want(t, err, nil); string(b) != "TEXT" {
		t.Errorf("the file holds %q", b)
	}
}

func TestFlagsOfAnotherProcess(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { want(t, c.Close(), nil) })
	s := newFlagStage(t, openBeside(t, beside(t, c)))
	other, err := Open(context.Background(), beside(t, c), Config{NoBackground: true})
	want(t, err, nil)
	defer func() { want(t, other.Close(bg), nil) }()
	f, err := other.Open(bg, Root, s.file, OpenRead|OpenWrite)
	want(t, err, nil)
	_, err = f.WriteAt(bg, []byte("TEXT"), 0)
	want(t, err, nil)
	s.set(t, s.file, FlagImmutable)
	want(t, f.Close(bg), ErrStale)
}

// An entry that does not repeat the flags of its directory is found.
func TestCheckFindsUntoldFlags(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	s.set(t, s.dir, FlagImmutable)
	e := record.EntryOf(&record.Inode{Ino: s.dir, Mode: ModeDirectory, Name: "dir", Parent: s.bucket})
	want(t, s.fs.update(bg, func(t cluster.Txn, _ *op) error { return record.PutDentry(t, s.bucket, e) }), nil)
	want(t, putFlagged(s, "dir/new"), nil)
	rep, err := s.fs.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) != 1 {
		t.Errorf("check: %+v", rep.Problems)
	}
	want(t, putFlagged(s, "dir/newer"), ErrProtected)
}

// A process that goes on where another ended has its files open whatever flags they
// got since, stores what was acknowledged, and refuses new writes.
func TestFlagsAfterTakeOver(t *testing.T) {
	s := newFlagStage(t, openTest(t, openLocal(t)))
	s.set(t, s.file, FlagImmutable)
	f, err := s.fs.Open(bg, Root, s.file, OpenRead|OpenWrite|OpenFlagged)
	want(t, err, nil)
	g, err := s.fs.Open(bg, Root, s.file, OpenRead|OpenWrite|OpenRewrites)
	want(t, err, nil)
	err = g.Rewrite(bg, nil, &KeptWrite{Ino: s.file, Epoch: s.epoch(t), Data: []byte("TEXT")})
	want(t, err, nil)
	want(t, g.Close(bg), nil)
	_, err = f.WriteAt(bg, []byte("x"), 0)
	want(t, err, ErrProtected)
	want(t, f.Close(bg), nil)
	b, err := readObject(s.fs, "bucket", "file")
	if want(t, err, nil); string(b) != "TEXT" {
		t.Errorf("the file holds %q", b)
	}
}

func (s *flagStage) epoch(t *testing.T) (epoch uint64) {
	t.Helper()
	want(t, s.fs.view(bg, func(r cluster.Reader) error {
		n, err := record.GetInode(r, s.file)
		if err == nil {
			epoch = n.Epoch
		}
		return err
	}), nil)
	return epoch
}
