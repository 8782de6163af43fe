package vfs

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/crc64nvme"

	"ogw/vfs/internal/checksum"
)

// appendTo appends and returns the object as the answer has it.
func appendTo(t testing.TB, fs *FS, key string, off int64, body []byte) ObjectInfo {
	t.Helper()
	info, err := fs.AppendObject(bg, ObjectName{"bucket", key}, off, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
	want(t, err, nil)
	return info
}

// wantClean checks the whole store, data included.
func wantClean(t testing.TB, fs *FS) {
	t.Helper()
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	if len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
}

// What was appended is there, of every size, to what was stored in every way; its
// checksum is that of the whole.
func TestAppendObject(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		rnd := rand.New(rand.NewPCG(1, 2))
		random := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			return b
		}
		var all []byte
		for i, n := range []int{1, 100, 5, 200 << 10, 3, 7, 300 << 10, 64 << 10} {
			body := random(n)
			info := appendTo(t, fs, "log", int64(len(all)), body)
			all = append(all, body...)
			got, head := get(t, fs, "log")
			if got != string(all) || info.Size != int64(len(all)) || head.ETag != info.ETag {
				t.Fatalf("append %d: %d bytes %q, want %d; head %q", i, info.Size, info.ETag, len(all), head.ETag)
			}
			info, err := fs.HeadObject(bg, ObjectName{"bucket", "log"}, GetOptions{Checksums: true})
			want(t, err, nil)
			sum := checksum.CRC64Bytes(crc64nvme.Checksum(all))
			if len(info.Checksums) != 1 || !bytes.Equal(info.Checksums[0].Value, sum) {
				t.Fatalf("append %d: checksums %+v, want %x", i, info.Checksums, sum)
			}
		}
		// A copy keeps what it had, and can be appended to.
		_, err := fs.CopyObject(bg, ObjectName{"bucket", "log"}, ObjectName{"bucket", "copy"}, CopyOptions{})
		want(t, err, nil)
		for _, key := range []string{"log", "copy"} {
			appendTo(t, fs, key, int64(len(all)), []byte(key))
			appendTo(t, fs, key, int64(len(all)+len(key)), random(150<<10))
		}
		for _, key := range []string{"log", "copy"} {
			if got, _ := get(t, fs, key); !strings.HasPrefix(got, string(all)+key) || len(got) != len(all)+len(key)+150<<10 {
				t.Errorf("%s has %d bytes", key, len(got))
			}
		}
		wantClean(t, fs)
	})
}

func TestAppendRefusals(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		name := ObjectName{"bucket", "k"}
		try := func(key string, off int64, body string, o PutOptions) error {
			o.Size = int64(len(body))
			_, err := fs.AppendObject(bg, ObjectName{"bucket", key}, off, strings.NewReader(body), o)
			return err
		}
		want(t, try("k", 3, "x", PutOptions{}), ErrNoSuchKey)
		want(t, try("k/", 0, "x", PutOptions{}), ErrInvalid)
		want(t, try("k", 0, "abc", PutOptions{Meta: ObjectMeta{User: map[string]string{"a": "b"}}}), nil)
		_, info := get(t, fs, "k")
		for _, off := range []int64{0, 2, 4} {
			want(t, try("k", off, "x", PutOptions{}), ErrWriteOffset)
		}
		want(t, try("k", 3, "", PutOptions{}), ErrInvalid)
		want(t, try("k", 3, "x", PutOptions{Meta: ObjectMeta{User: map[string]string{"a": "b"}}}), ErrAppendMeta)
		want(t, try("k", 3, "x", PutOptions{Meta: ObjectMeta{Grants: Grants{}}}), ErrAppendMeta)
		want(t, try("k", 3, "x", PutOptions{Cond: Preconditions{IfMatch: []ETag{"other"}}}), ErrPrecondition)
		want(t, try("k", 3, "x", PutOptions{Finish: func() ([]Checksum, error) { return nil, ErrBadDigest }}), ErrBadDigest)
		_, err := fs.AppendObject(bg, name, 3, strings.NewReader("x"), PutOptions{Size: 2})
		want(t, err, ErrShortBody)
		if got, now := get(t, fs, "k"); got != "abc" || now.ETag != info.ETag || now.Meta.User["a"] != "b" {
			t.Errorf("%q %+v, was %+v", got, now, info)
		}
		want(t, try("k", 3, "d", PutOptions{Cond: Preconditions{IfMatch: []ETag{info.ETag}}}), nil)
		if got, now := get(t, fs, "k"); got != "abcd" || now.ETag == info.ETag || now.Meta.User["a"] != "b" {
			t.Errorf("%q %+v", got, now)
		}
		wantClean(t, fs)
	})
}

// A checksum of the whole follows from those of both parts, where it can.
func TestAppendChecksums(t *testing.T) {
	fs := openTest(t, openLocal(t))
	bucketFS(t, fs)
	put := func(key string, off int64, body string, sum Checksum) {
		t.Helper()
		_, err := fs.AppendObject(bg, ObjectName{"bucket", key}, off, strings.NewReader(body), PutOptions{Size: int64(len(body)),
			Finish: func() ([]Checksum, error) { return []Checksum{sum}, nil }})
		want(t, err, nil)
	}
	sum := func(body string) Checksum {
		v := crc32.ChecksumIEEE([]byte(body))
		return Checksum{Algorithm: ChecksumCRC32, Value: []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}}
	}
	put("k", 0, "abc", sum("abc"))
	put("k", 3, "defgh", sum("defgh"))
	info, err := fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{})
	_ = info
	want(t, err, nil)
	info, err = fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Checksums: true})
	want(t, err, nil)
	if len(info.Checksums) != 2 || !bytes.Equal(info.Checksums[0].Value, sum("abcdefgh").Value) {
		t.Errorf("%+v", info.Checksums)
	}
	put("k", 8, "i", Checksum{Algorithm: ChecksumSHA1, Value: make([]byte, 20)})
	if info, err = fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Checksums: true}); err != nil || len(info.Checksums) != 1 {
		t.Errorf("%v %+v", err, info.Checksums)
	}
}

// Of many that append at one offset one wins, and no byte is lost; a writer of the
// file is no hindrance.
func TestAppendRace(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		const rounds, writers = 12, 6
		var size int64
		for round := range rounds {
			var wins atomic.Int64
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					body := bytes.Repeat([]byte{byte('a' + i)}, 1+round*9000)
					_, err := fs.AppendObject(bg, ObjectName{"bucket", "log"}, size, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
					switch {
					case err == nil:
						wins.Add(1)
					case !errors.Is(err, ErrWriteOffset):
						t.Error(err)
					}
				})
			}
			wg.Go(func() { // the content is shared concurrently
				_, err := fs.CopyObject(bg, ObjectName{"bucket", "log"}, ObjectName{"bucket", "copy"}, CopyOptions{})
				if err != nil && !errors.Is(err, ErrNoSuchKey) {
					t.Error(err)
				}
			})
			wg.Wait()
			size += int64(1 + round*9000)
			if got, _ := get(t, fs, "log"); wins.Load() != 1 || int64(len(got)) != size {
				t.Fatalf("round %d: %d winners, %d bytes, want %d", round, wins.Load(), len(got), size)
			}
		}
		wantClean(t, fs)
	})
}

// What a mount wrote and did not flush yet comes before what is appended, and a file
// that is open shows it.
func TestAppendToOpenFile(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		b := mustLookup(t, fs, RootIno, "bucket").Ino
		ino := mustFile(t, fs, b, "k")
		f, err := fs.Open(bg, Root, ino, OpenRead|OpenWrite)
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("written "), 0)
		want(t, err, nil)
		appendTo(t, fs, "k", 8, []byte("appended "))
		_, err = f.WriteAt(bg, []byte("again"), 17)
		want(t, err, nil)
		got := make([]byte, 40)
		n, err := f.ReadAt(bg, got, 0)
		if err != nil && !errors.Is(err, io.EOF) || string(got[:n]) != "written appended again" {
			t.Errorf("%q, %v", got[:n], err)
		}
		want(t, f.Close(bg), nil)
		if got, _ := get(t, fs, "k"); got != "written appended again" {
			t.Errorf("%q", got)
		}
		wantClean(t, fs)
	})
}
