package vfs

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// TestToken has two processes over one store get the same requests.
func TestToken(t *testing.T) {
	disk := mem.NewDisk()
	first := openTest(t, mem.New(mem.Options{Disk: disk}))
	ctx := context.Background()
	under := func(id byte) context.Context { return WithToken(ctx, &Token{ID: [16]byte{id, id, id}}) }
	do := func(id byte, fs *FS) error {
		_, err := fs.Mkdir(under(id), Root, RootIno, "dir", 0o755)
		return err
	}
	want(t, do(1, first), nil)
	want(t, do(1, first), ErrExist) // the process that answered it remembers by itself
	want(t, do(2, first), ErrExist) // failed: leaves no record
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}

	second := openTest(t, mem.New(mem.Options{Disk: disk}))
	want(t, do(1, second), ErrDone)
	want(t, do(2, second), ErrExist)
	want(t, do(3, second), ErrExist)
	want(t, second.Rmdir(under(4), Root, RootIno, "dir"), nil)
	want(t, do(1, second), ErrDone) // however the directory fares since
	want(t, do(2, second), nil)

	// A token is for one change; what follows in the same context is free.
	both := under(5)
	if _, err := second.Mkdir(both, Root, RootIno, "a", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Mkdir(both, Root, RootIno, "b", 0o755); err != nil {
		t.Fatal(err)
	}
}

// The token is of the change alone, not of the writes before it that are stored
// first.
func TestTokenAfterWrites(t *testing.T) {
	disk := mem.NewDisk()
	ctx := context.Background()
	under := func() context.Context { return WithToken(ctx, &Token{ID: [16]byte{1}}) }
	cut := int64(1)
	other := NewCred(7, 0)
	first := openTest(t, mem.New(mem.Options{Disk: disk}))
	dir := mustMkdir(t, first, RootIno, "dir")
	a, file, _, err := first.Create(ctx, Root, dir, "f", CreateOptions{Mode: 0o644, Flags: OpenWrite})
	want(t, err, nil)
	_, err = file.WriteAt(ctx, []byte("bytes"), 0)
	want(t, err, nil)
	_, err = first.SetAttr(under(), other, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrAccess)
	want(t, file.Close(ctx), nil)
	want(t, first.Close(ctx), nil)

	second := openTest(t, mem.New(mem.Options{Disk: disk}))
	_, err = second.SetAttr(under(), other, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrAccess)
	_, err = second.SetAttr(under(), Root, a.Ino, SetAttr{Size: &cut})
	want(t, err, nil)
	want(t, second.Close(ctx), nil)

	third := openTest(t, mem.New(mem.Options{Disk: disk}))
	_, err = third.SetAttr(under(), Root, a.Ino, SetAttr{Size: &cut})
	want(t, err, ErrDone)
}

// TestTokenOfEmptied: emptying a file that fills the store, asked for again of the next process as
// after a lost answer, leaves alone what was written since.
func TestTokenOfEmptied(t *testing.T) {
	none := int64(0)
	for how, empty := range map[string]func(fs *FS, ino Ino) error{
		"truncate": func(fs *FS, ino Ino) error {
			_, err := fs.SetAttr(WithToken(bg, &Token{ID: [16]byte{1}}), Root, ino, SetAttr{Size: &none})
			return err
		},
		"open": func(fs *FS, ino Ino) error {
			f, err := fs.Open(WithToken(bg, &Token{ID: [16]byte{1}}), Root, ino, OpenWrite|OpenTrunc)
			if err == nil {
				err = f.Close(bg)
			}
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			disk, faults := mem.NewDisk(), &mem.Faults{}
			first := openContentTest(t, mem.New(mem.Options{Disk: disk, Faults: faults}), Config{})
			ino := mustFile(t, first, RootIno, "f")
			f := mustOpen(t, first, ino, OpenWrite)
			faults.FailFrom(1, cluster.ErrNoSpace, mem.OpBlobCreate, mem.OpBlobWrite, mem.OpBlobCommit)
			_, err := f.WriteAt(bg, bytes.Repeat([]byte{5}, 100<<10), 0)
			want(t, err, nil)
			want(t, empty(first, ino), nil)
			faults.Clear()
			want(t, f.Close(bg), nil)
			want(t, first.Close(bg), nil)

			second := openContentTest(t, mem.New(mem.Options{Disk: disk}), Config{})
			replace(t, second, ino, []byte("since"))
			want(t, empty(second, ino), ErrDone)
			wantText(t, second, ino, "since")
		})
	}
}

// sealedKV refuses to store the inode of one file.
type sealedKV struct {
	cluster.KV
	key []byte
}

type sealedTxn struct {
	cluster.Txn
	kv *sealedKV
}

var errSealed = errors.New("sealed")

func (kv *sealedKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return kv.KV.Update(ctx, func(t cluster.Txn) error { return fn(sealedTxn{t, kv}) })
}

func (t sealedTxn) Set(key, value []byte) error {
	if bytes.Equal(key, t.kv.key) {
		return errSealed
	}
	return t.Txn.Set(key, value)
}

// The token of an append is not spent by another file, which is stored for its room: the
// gateway may end before the append itself is.
func TestBesideAppendTokenOfOthers(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "log", "begin ")
	put(t, p.a, "other", "")
	full := besideConfig
	full.DirtyBytes = 1
	ending, err := Open(bg, beside(t, p.c), full)
	want(t, err, nil)
	t.Cleanup(func() { _ = ending.Close(bg) })
	other, log := openFileAt(t, ending, "other", 0), openFileAt(t, ending, "log", OpenAppend)
	writeThrough(t, other, "x", 0)
	for room := true; room; { // what is left stands for writes on their way
		room = ending.dirty.try(1, 1) != nil
	}
	plain := ending.kv
	setKV(ending, &sealedKV{KV: plain, key: record.InodeKey(log.Ino())})
	token := Token{ID: [16]byte{1, 2, 3}}
	again := token
	_, err = log.Append(WithToken(bg, &token), []byte("line"))
	want(t, err, errSealed)
	if n, err := p.b.GetAttr(bg, other.Ino()); err != nil || n.Size == 0 {
		t.Fatalf("the other file was not stored: %v", err)
	}
	setKV(ending, plain)
	f := openFileAt(t, p.b, "log", OpenAppend)
	_, err = f.Append(WithToken(bg, &again), []byte("line"))
	want(t, err, nil)
	wantThrough(t, f, "begin line")
	want(t, errors.Join(f.Close(bg), log.Close(bg), other.Close(bg)), nil)
}

// createHook calls the test before a blob is made.
type createHook struct {
	cluster.Blobs
	create func()
}

func (h *createHook) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	h.create()
	return h.Blobs.Create(ctx, id, sizeHint)
}

// An append whose bytes are moved to another content before they are stored, as the file
// was copied by reference meanwhile, leaves its token with them.
func TestBesideAppendTokenMoved(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "log", blobBody)
	blobs := &createHook{Blobs: p.c.Blobs, create: func() {}}
	c := *p.c
	c.Blobs = blobs
	ending := p.open(beside(t, &c))
	log := openFileAt(t, ending, "log", OpenAppend)
	created := 0
	blobs.create = func() {
		if created++; created == 1 {
			_, err := p.b.CopyObject(bg, ObjectName{"bucket", "log"}, ObjectName{"bucket", "copy"}, CopyOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	}
	line := strings.Repeat("line", 10)
	token := Token{ID: [16]byte{1, 2, 3}}
	again := token
	_, err := log.Append(WithToken(bg, &token), []byte(line))
	want(t, err, nil)
	if created != 2 {
		t.Fatalf("%d blobs were made: the bytes were not moved", created)
	}
	f := openFileAt(t, p.b, "log", OpenAppend)
	_, err = f.Append(WithToken(bg, &again), []byte(line))
	want(t, err, ErrDone)
	wantThrough(t, f, blobBody+line)
	want(t, errors.Join(f.Close(bg), log.Close(bg)), nil)
}
