package vfs

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/uploads"
)

// minPartBytes is what uploads are completed with, as S3 does.
const minPartBytes = 5 << 20

func createUpload(t testing.TB, fs *FS, key string) string {
	t.Helper()
	u, err := fs.CreateUpload(bg, ObjectName{"bucket", key}, PutOptions{Meta: ObjectMeta{ContentType: "text/up", User: map[string]string{"m": "v"}}}, "", false)
	want(t, err, nil)
	return u.ID
}

func putPart(t testing.TB, fs *FS, key, upload string, number int, body []byte) CompletePart {
	t.Helper()
	p, err := fs.PutPart(bg, ObjectName{"bucket", key}.Upload(upload), number, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
	want(t, err, nil)
	sum := md5.Sum(body)
	if p.ETag != ETag(hex.EncodeToString(sum[:])) || p.Size != int64(len(body)) || p.Number != number {
		t.Errorf("part: %+v", p)
	}
	return CompletePart{Number: number, ETag: p.ETag}
}

func complete(fs *FS, key, upload string, parts []CompletePart) (ObjectInfo, error) {
	return fs.CompleteUpload(bg, ObjectName{"bucket", key}.Upload(upload), CompleteOptions{MinPartBytes: minPartBytes, Parts: parts})
}

// partsETag is S3's ETag of a multipart object.
func partsETag(bodies ...[]byte) ETag {
	h := md5.New()
	for _, b := range bodies {
		sum := md5.Sum(b)
		h.Write(sum[:])
	}
	return ETag(fmt.Sprintf("%x-%d", h.Sum(nil), len(bodies)))
}

func wantBlobs(t testing.TB, fs *FS, n int) {
	t.Helper()
	got := 0
	err := fs.blobs.List(bg, cluster.BlobID{}, func(cluster.BlobInfo) error { got++; return nil })
	if want(t, err, nil); got != n {
		t.Errorf("%d blobs are stored, want %d", got, n)
	}
}

func TestMultipart(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		up := createUpload(t, fs, "dir/k")
		a, b, c := randomBytes(minPartBytes), randomBytes(minPartBytes+1), []byte("the end")
		p3 := putPart(t, fs, "dir/k", up, 30, c)
		putPart(t, fs, "dir/k", up, 1, b) // replaced below
		putPart(t, fs, "dir/k", up, 5, a) // not used
		p1 := putPart(t, fs, "dir/k", up, 1, a)
		p2 := putPart(t, fs, "dir/k", up, 7, b)
		if got := listAll(t, fs); len(got) != 0 {
			t.Errorf("before complete: %q", got)
		}
		list, more, err := fs.ListParts(bg, ObjectName{"bucket", "dir/k"}.Upload(up), 1, 2)
		if err != nil || !more || len(list) != 2 || list[0].Number != 5 || list[1].Number != 7 || list[1].ETag != p2.ETag {
			t.Errorf("parts: %+v %v %v", list, more, err)
		}
		wantBlobs(t, fs, 4) // with the one that was replaced
		want(t, fs.collectUploadOf(up), nil)
		wantBlobs(t, fs, 3)
		mustBeClean(t, fs)

		info, err := complete(fs, "dir/k", up, []CompletePart{p1, p2, p3})
		want(t, err, nil)
		whole := slices.Concat(a, b, c)
		if info.ETag != partsETag(a, b, c) || info.Size != int64(len(whole)) || len(info.Parts) != 3 || info.Parts[2].Number != 30 {
			t.Errorf("completed: %+v", info)
		}
		check := func() {
			t.Helper()
			got, head := get(t, fs, "dir/k")
			if got != string(whole) || head.ETag != info.ETag || head.Meta.ContentType != "text/up" || head.Meta.User["m"] != "v" || len(head.Parts) != 3 {
				t.Errorf("get: %d bytes, %+v", len(got), head)
			}
		}
		check()
		want(t, fs.collectUploadOf(up), nil)
		want(t, fs.collectUploadOf(up), nil) // again does nothing
		check()
		wantBlobs(t, fs, 2)
		mustBeClean(t, fs)

		// Asked again, it succeeds; everything else fails.
		again, err := complete(fs, "dir/k", up, []CompletePart{p1, p2, p3})
		if err != nil || again.ETag != info.ETag || again.Size != info.Size {
			t.Errorf("again: %+v %v", again, err)
		}
		_, err = fs.PutPart(bg, ObjectName{"bucket", "dir/k"}.Upload(up), 1, bytes.NewReader(a), PutOptions{Size: -1})
		wantErr(t, err, ErrNoSuchUpload)
		wantErr(t, fs.AbortUpload(bg, ObjectName{"bucket", "dir/k"}.Upload(up)), ErrNoSuchUpload)
	})
}

// collectUploadOf runs the collector's part of an upload at once.
func (fs *FS) collectUploadOf(upload string) error {
	id, _, _ := keypath.ParseUploadID(upload)
	return fs.contents.CollectUpload(bg, id)
}

func TestMultipartErrors(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		up := createUpload(t, fs, "k")
		big := putPart(t, fs, "k", up, 1, randomBytes(minPartBytes))
		small := putPart(t, fs, "k", up, 2, []byte("small"))
		last := putPart(t, fs, "k", up, 3, []byte("last"))
		other := CompletePart{Number: 2, ETag: big.ETag}
		for name, c := range map[string]struct {
			parts []CompletePart
			want  error
		}{
			"none":       {nil, ErrBadPart},
			"order":      {[]CompletePart{small, big}, ErrPartOrder},
			"twice":      {[]CompletePart{big, big}, ErrPartOrder},
			"number":     {[]CompletePart{{Number: 0, ETag: big.ETag}}, ErrBadPartNumber},
			"number max": {[]CompletePart{{Number: 10001, ETag: big.ETag}}, ErrBadPartNumber},
			"small":      {[]CompletePart{big, small, last}, ErrPartTooSmall},
			"ETag":       {[]CompletePart{big, other}, ErrBadPart},
			"missing":    {[]CompletePart{big, {Number: 9, ETag: big.ETag}}, ErrBadPart},
			"missing 2":  {[]CompletePart{big, {Number: 2, ETag: small.ETag}, {Number: 9}}, ErrPartTooSmall},
			"checksum":   {[]CompletePart{{Number: 1, ETag: big.ETag, Checksums: []Checksum{{Algorithm: ChecksumCRC64NVME, Value: make([]byte, 8)}}}}, ErrBadPart},
		} {
			_, err := complete(fs, "k", up, c.parts)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: error %v, want %v", name, err, c.want)
			}
		}
		for _, n := range []int{0, -1, MaxParts + 1} {
			_, err := fs.PutPart(bg, ObjectName{"bucket", "k"}.Upload(up), n, strings.NewReader(""), PutOptions{})
			wantErr(t, err, ErrBadPartNumber)
		}
		for _, id := range []string{"", "x", strings.Repeat("0", 32), strings.ToUpper(up) + "0", up[:31] + "g", up[:16] + strings.Repeat("0", 16)} {
			_, err := fs.PutPart(bg, ObjectName{"bucket", "k"}.Upload(id), 1, strings.NewReader(""), PutOptions{})
			wantErr(t, err, ErrNoSuchUpload)
			_, err = complete(fs, "k", id, []CompletePart{big})
			wantErr(t, err, ErrNoSuchUpload)
		}
		_, err := fs.GetUpload(bg, ObjectName{"bucket", "other"}.Upload(up))
		wantErr(t, err, ErrNoSuchUpload)
		_, _, err = fs.ListParts(bg, ObjectName{"absent", "k"}.Upload(up), 0, 1)
		wantErr(t, err, ErrNoSuchBucket)
		_, err = fs.CreateUpload(bg, ObjectName{"absent", "k"}, PutOptions{}, "", false)
		wantErr(t, err, ErrNoSuchBucket)
		for alg, composite := range map[ChecksumAlgorithm]bool{"MD5": false, ChecksumSHA1: false, ChecksumCRC64NVME: true} {
			_, err = fs.CreateUpload(bg, ObjectName{"bucket", "k"}, PutOptions{}, alg, composite)
			wantErr(t, err, ErrInvalid)
		}
		// Preconditions.
		put(t, fs, "k", "there")
		_, err = fs.CompleteUpload(bg, ObjectName{"bucket", "k"}.Upload(up), CompleteOptions{MinPartBytes: minPartBytes, Parts: []CompletePart{big}, Cond: Preconditions{IfNoneMatch: []ETag{"*"}}})
		wantErr(t, err, ErrPrecondition)
		_, err = fs.CompleteUpload(bg, ObjectName{"bucket", "k"}.Upload(up), CompleteOptions{MinPartBytes: minPartBytes, Parts: []CompletePart{big}, Cond: Preconditions{IfMatch: []ETag{"x"}}})
		wantErr(t, err, ErrPrecondition)
		if b, _ := get(t, fs, "k"); b != "there" {
			t.Error("object changed")
		}
		want(t, fs.AbortUpload(bg, ObjectName{"bucket", "k"}.Upload(up)), nil)
		want(t, fs.collectUploadOf(up), nil)
		wantBlobs(t, fs, 0)
		_, err = fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
		want(t, err, nil)
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

func TestMultipartChecksums(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		a, b := randomBytes(minPartBytes), []byte("tail of the object")
		whole := slices.Concat(a, b)
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		for _, c := range []struct {
			alg       ChecksumAlgorithm
			composite bool
			want      []byte
		}{
			{ChecksumCRC32, false, be32(crc32.ChecksumIEEE(whole))},
			{ChecksumCRC32C, false, be32(crc32.Checksum(whole, castagnoli))},
			{ChecksumCRC32, true, be32(crc32.ChecksumIEEE(slices.Concat(be32(crc32.ChecksumIEEE(a)), be32(crc32.ChecksumIEEE(b)))))},
			{ChecksumCRC64NVME, false, nil},
			{ChecksumSHA256, true, nil},
		} {
			u, err := fs.CreateUpload(bg, ObjectName{"bucket", "k"}, PutOptions{}, c.alg, c.composite)
			want(t, err, nil)
			var parts []CompletePart
			for i, body := range [][]byte{a, b} {
				p, err := fs.PutPart(bg, ObjectName{"bucket", "k"}.Upload(u.ID), i+1, bytes.NewReader(body), PutOptions{Size: -1})
				want(t, err, nil)
				h, _ := c.alg.New()
				h.Write(body)
				sum := Checksum{Algorithm: c.alg, Value: h.Sum(nil)}
				parts = append(parts, CompletePart{Number: i + 1, ETag: p.ETag, Checksums: []Checksum{sum}})
			}
			_, err = fs.CompleteUpload(bg, ObjectName{"bucket", "k"}.Upload(u.ID), CompleteOptions{MinPartBytes: minPartBytes, Parts: parts, Checksum: &Checksum{Algorithm: c.alg, Value: []byte("wrong")}})
			wantErr(t, err, ErrBadDigest)
			var said *Checksum
			if c.want != nil {
				said = &Checksum{Algorithm: c.alg, Value: c.want}
			}
			_, err = fs.CompleteUpload(bg, ObjectName{"bucket", "k"}.Upload(u.ID), CompleteOptions{MinPartBytes: minPartBytes, Parts: parts, Checksum: said})
			want(t, err, nil)
			info, err := fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Checksums: true})
			want(t, err, nil)
			h, _ := ChecksumCRC64NVME.New()
			h.Write(whole)
			last := info.Checksums[len(info.Checksums)-1]
			if last.Algorithm != ChecksumCRC64NVME || !bytes.Equal(last.Value, h.Sum(nil)) {
				t.Errorf("%s: CRC64NVME %x", c.alg, last.Value)
			}
			first := info.Checksums[0]
			if first.Algorithm != c.alg || c.want != nil && !bytes.Equal(first.Value, c.want) || c.composite != (first.Parts == 2) {
				t.Errorf("%s %v: %+v, want %x", c.alg, c.composite, first, c.want)
			}
			if !bytes.Equal(info.Parts[1].Checksum, parts[1].Checksums[0].Value) {
				t.Errorf("%s: part checksum %x", c.alg, info.Parts[1].Checksum)
			}
		}
	})
}

func be32(v uint32) []byte { return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

func TestCopyPart(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		src := randomBytes(2*minPartBytes + 100)
		put(t, fs, "src", string(src))
		up := createUpload(t, fs, "k")
		copyPart := func(n int, off, length int64, want error) CompletePart {
			t.Helper()
			p, err := fs.CopyPart(bg, ObjectName{"bucket", "k"}.Upload(up), n, PartSource{ObjectName: ObjectName{"bucket", "src"}, Off: off, Length: length})
			wantErr(t, err, want)
			return CompletePart{Number: n, ETag: p.ETag}
		}
		for _, r := range [][2]int64{{-1, 1}, {0, int64(len(src)) + 1}, {int64(len(src)), -1}, {int64(len(src)) + 1, -1}, {1, -2}, {1, 1<<63 - 1}} {
			copyPart(1, r[0], r[1], ErrBadRange)
		}
		copyPart(1, 0, 10, nil) // replaced
		p1 := copyPart(1, 100, minPartBytes, nil)
		p2 := copyPart(2, 0, -1, nil)
		p3 := putPart(t, fs, "k", up, 3, []byte("end"))
		if p2.ETag != md5Hex(string(src)) {
			t.Error("ETag of a whole:", p2.ETag)
		}
		_, err := fs.CopyPart(bg, ObjectName{"bucket", "k"}.Upload(up), 4, PartSource{ObjectName: ObjectName{"bucket", "src"}, Length: -1, Cond: Preconditions{IfMatch: []ETag{"x"}}})
		wantErr(t, err, ErrPrecondition)
		_, err = complete(fs, "k", up, []CompletePart{p1, p2, p3})
		want(t, err, nil)
		whole := string(slices.Concat(src[100:100+minPartBytes], src, []byte("end")))
		check := func() {
			t.Helper()
			if got, _ := get(t, fs, "k"); got != whole {
				t.Errorf("%d bytes, want %d", len(got), len(whole))
			}
		}
		check()
		want(t, fs.collectUploadOf(up), nil)
		if _, err := fs.DeleteObject(bg, ObjectName{"bucket", "src"}, DeleteOptions{}); err != nil {
			t.Error(err)
		}
		_, err = fs.Collect(bg)
		want(t, err, nil)
		check()
		mustBeClean(t, fs)
		info, err := fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Checksums: true})
		want(t, err, nil)
		h, _ := ChecksumCRC64NVME.New()
		io.WriteString(h, whole)
		if !bytes.Equal(info.Checksums[0].Value, h.Sum(nil)) {
			t.Errorf("CRC64NVME: %x", info.Checksums[0].Value)
		}
		_, err = fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
		want(t, err, nil)
		fs.Collect(bg)
		fs.Collect(bg)
		wantBlobs(t, fs, 0)
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

// As many parts as there may be, on an engine with small transactions.
func TestManyParts(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{Limits: cluster.Limits{Ops: 128, Bytes: 3 << 19}})))
	src := randomBytes(minPartBytes)
	put(t, fs, "src", string(src))
	up := createUpload(t, fs, "k")
	parts := make([]CompletePart, MaxParts)
	for i := range parts {
		p, err := fs.CopyPart(bg, ObjectName{"bucket", "k"}.Upload(up), i+1, PartSource{ObjectName: ObjectName{"bucket", "src"}, Off: 0, Length: -1})
		want(t, err, nil)
		parts[i] = CompletePart{Number: i + 1, ETag: p.ETag}
	}
	info, err := complete(fs, "k", up, parts)
	want(t, err, nil)
	if info.Size != MaxParts*minPartBytes || len(info.Parts) != MaxParts || !strings.HasSuffix(string(info.ETag), "-10000") {
		t.Errorf("%d bytes, %d parts, %s", info.Size, len(info.Parts), info.ETag)
	}
	want(t, fs.collectUploadOf(up), nil)
	o, err := fs.GetObject(bg, ObjectName{"bucket", "k"}, GetOptions{})
	want(t, err, nil)
	defer o.Close()
	b := make([]byte, 1000)
	if _, err := o.ReadAt(b, 7777*minPartBytes-500); err != nil || !bytes.Equal(b, slices.Concat(src[minPartBytes-500:], src[:500])) {
		t.Error("bytes differ", err)
	}
}

var errGivenUp = errors.New("given up")

// givenUp is a Publisher that does not publish.
type givenUp struct {
	completing
	before func()
	err    error // of the assembling
}

func (c *givenUp) Publish(ctx context.Context, assemble func(t *uploads.Txn) (uploads.Assembled, error)) error {
	c.before()
	c.err = c.fs.update(ctx, func(t cluster.Txn, o *op) error {
		_, err := assemble(o.uploading(t))
		return err
	})
	return errGivenUp
}

// A staged Complete that was given up is cleared by the next and by Abort.
func TestStagedComplete(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{Limits: cluster.Limits{Ops: 128}})))
	src := randomBytes(minPartBytes)
	put(t, fs, "src", string(src))
	for _, abort := range []bool{false, true} {
		up := createUpload(t, fs, "k")
		var parts []CompletePart
		for i := range 100 {
			p, err := fs.CopyPart(bg, ObjectName{"bucket", "k"}.Upload(up), i+1, PartSource{ObjectName: ObjectName{"bucket", "src"}, Off: 0, Length: -1})
			want(t, err, nil)
			parts = append(parts, CompletePart{Number: i + 1, ETag: p.ETag})
		}
		name, err := parseUploadName(ObjectName{"bucket", "k"}.Upload(up))
		want(t, err, nil)
		// A part that comes in ends the staging.
		c := givenUp{completing: completing{fs: fs, key: &name.Object, cond: &Preconditions{}}}
		c.before = func() { parts[7] = putPart(t, fs, "k", up, 8, randomBytes(minPartBytes)) }
		wantErr(t, fs.multipart.Complete(bg, &name, &CompleteOptions{MinPartBytes: minPartBytes, Parts: slices.Clone(parts)}, &c), errGivenUp)
		wantErr(t, c.err, ErrConflict)
		mustBeClean(t, fs)
		if abort {
			want(t, fs.AbortUpload(bg, ObjectName{"bucket", "k"}.Upload(up)), nil)
		} else {
			_, err := complete(fs, "k", up, parts[:3])
			want(t, err, nil)
			if got, _ := get(t, fs, "k"); got != string(slices.Concat(src, src, src)) {
				t.Error("bytes differ")
			}
			_, err = fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
			want(t, err, nil)
		}
		want(t, fs.collectUploadOf(up), nil)
	}
	_, err := fs.DeleteObject(bg, ObjectName{"bucket", "src"}, DeleteOptions{})
	want(t, err, nil)
	want(t, fs.DeleteBucket(bg, "bucket"), nil)
	dumpEmpty(t, fs)
}

// Parts, completes and aborts at once: one end wins, and what it published
// is one of the sets of parts.
func TestMultipartRaces(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		bodies := [][]byte{randomBytes(minPartBytes), randomBytes(minPartBytes)}
		for round := range 6 {
			key := fmt.Sprint("k", round)
			up := createUpload(t, fs, key)
			var parts []CompletePart
			for n := range 3 {
				parts = append(parts, putPart(t, fs, key, up, n+1, bodies[0]))
			}
			var wg sync.WaitGroup
			errs := make([]error, 5)
			for i := range errs {
				wg.Go(func() {
					switch i {
					case 0, 1:
						_, errs[i] = complete(fs, key, up, parts)
					case 2:
						errs[i] = fs.AbortUpload(bg, ObjectName{"bucket", key}.Upload(up))
					default:
						_, errs[i] = fs.PutPart(bg, ObjectName{"bucket", key}.Upload(up), i, bytes.NewReader(bodies[1]), PutOptions{Size: -1})
					}
				})
			}
			wg.Wait()
			aborted := errs[2] == nil
			for i, err := range errs {
				if err != nil && !errors.Is(err, ErrNoSuchUpload) && !errors.Is(err, ErrBadPart) && !errors.Is(err, ErrConflict) {
					t.Errorf("%d: %v", i, err)
				}
			}
			got, _, err := tryGet(bg, fs, key)
			if completed := errs[0] == nil || errs[1] == nil; completed == aborted && completed || completed != (err == nil) {
				t.Errorf("round %d: %v, get: %v", round, errs, err)
			}
			if err == nil && got != strings.Repeat(string(bodies[0]), 3) {
				t.Error("bytes differ")
			}
			if err != nil && !aborted {
				want(t, fs.AbortUpload(bg, ObjectName{"bucket", key}.Upload(up)), nil)
			}
			want(t, fs.collectUploadOf(up), nil)
			if _, err := fs.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

func TestListUploads(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		type upload struct{ key, id string }
		var all []upload
		for _, key := range []string{"a", "a", "a/b", "a/c", "a\x00", "a\x00b", "b/x/y", "b/z", "c", "\x00"} {
			all = append(all, upload{key, createUpload(t, fs, key)})
		}
		slices.SortFunc(all, func(a, b upload) int {
			if c := strings.Compare(a.key, b.key); c != 0 {
				return c
			}
			return strings.Compare(a.id, b.id)
		})
		for _, prefix := range []string{"", "a", "a/", "a\x00", "zz"} {
			for _, delimiter := range []string{"", "/", "\x00"} {
				var expect []string
				for _, u := range all {
					rest, ok := strings.CutPrefix(u.key, prefix)
					if !ok {
						continue
					}
					e := u.key + " " + u.id
					if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
						e = "P" + prefix + rest[:i+len(delimiter)]
					}
					if !slices.Contains(expect, e) {
						expect = append(expect, e)
					}
				}
				for limit := 1; limit < 5; limit++ {
					var got []string
					for key, id, pages := "", "", 0; ; pages++ {
						p, err := fs.ListUploads(bg, "bucket", ListUploadsOptions{Prefix: prefix, Delimiter: delimiter, AfterKey: key, AfterUpload: id, MaxUploads: limit})
						want(t, err, nil)
						for _, u := range p.Uploads {
							got = append(got, u.Key+" "+u.ID)
						}
						for _, c := range p.CommonPrefixes {
							got = append(got, "P"+c)
						}
						if !p.Truncated {
							break
						}
						if key, id = p.NextKey, p.NextUpload; pages > 20 {
							t.Fatal("no end")
						}
					}
					slices.Sort(got)
					slices.Sort(expect)
					if !slices.Equal(got, expect) {
						t.Errorf("prefix %q delimiter %q limit %d: %q\nwant %q", prefix, delimiter, limit, got, expect)
					}
				}
			}
		}
		// The bucket is empty, and its uploads go with it.
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

// TestListUploadsAmongOthers: who is shown his own uploads only does not make
// one page look at all of the others'.
func TestListUploadsAmongOthers(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bucketFS(t, fs)
	want(t, fs.SetBucketGrants(bg, "bucket", Grants{{Grantee: GranteeEverybody, Permission: PermRead}}), nil)
	ino := mustLookup(t, fs, RootIno, "bucket").Ino
	const others = listing.MaxUploadsPassed + listing.MaxUploadsPassed/2
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		for i := range others + 1 {
			u := record.Upload{ID: ContentID(1000 + i), Bucket: ino, Key: fmt.Sprintf("k%05d", i), By: record.Initiator{User: "of others"}}
			rand.Read(u.Token[:])
			if i == others {
				u.By.User = modelSubjects["bob"].User
			}
			want(t, tx.Set(u.StoreKey(), u.Encode()), nil)
		}
		return nil
	}), nil)
	bob := WithSubject(bg, modelSubjects["bob"])
	page, err := fs.ListUploads(bob, "bucket", ListUploadsOptions{MaxUploads: 10})
	want(t, err, nil)
	if !page.Truncated || len(page.Uploads) != 0 || page.NextKey != "" || page.NextUpload == "" {
		t.Errorf("the first page: %+v", page)
	}
	again, err := fs.ListUploads(bob, "bucket", ListUploadsOptions{MaxUploads: 10})
	if err != nil || again.NextUpload == page.NextUpload || len(again.NextUpload) != 1+base64.RawURLEncoding.EncodedLen(12+16+listing.MarkerBytes) {
		t.Errorf("the marker of the first page, again: %s, %v", again.NextUpload, err)
	}
	if _, err := fs.GetUpload(bg, ObjectName{"bucket", "k09999"}.Upload(page.NextUpload)); !errors.Is(err, ErrNoSuchUpload) {
		t.Errorf("the marker is good for another's upload: %v", err)
	}
	if _, err := fs.CreateBucket(bg, "other", Root); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct{ bucket, marker string }{
		{"other", page.NextUpload}, {"bucket", page.NextUpload[:40]}, {"bucket", "~"}, {"bucket", page.NextUpload[:len(page.NextUpload)-2] + "AA"},
	} {
		if _, err := fs.ListUploads(bg, wrong.bucket, ListUploadsOptions{AfterUpload: wrong.marker, MaxUploads: 10}); !errors.Is(err, ErrInvalid) {
			t.Errorf("marker %s in bucket %s: %v", wrong.marker, wrong.bucket, err)
		}
	}
	page, err = fs.ListUploads(bob, "bucket", ListUploadsOptions{AfterKey: page.NextKey, AfterUpload: page.NextUpload, MaxUploads: 10})
	want(t, err, nil)
	if page.Truncated || len(page.Uploads) != 1 || page.Uploads[0].Key != fmt.Sprintf("k%05d", others) {
		t.Errorf("the second page: %+v", page)
	}
	if page, err := fs.ListUploads(bg, "bucket", ListUploadsOptions{MaxUploads: 1000}); err != nil || len(page.Uploads) != 1000 {
		t.Errorf("the owner's: %d uploads, %v", len(page.Uploads), err)
	}
}

// TestRemovalOutlivesClient: the uploads of a bucket go with it, also when its client is gone
// by then, who does not keep a stop waiting either.
func TestRemovalOutlivesClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
		h := hook(fs)
		remove := func(uploads int, takes time.Duration) (left bool) {
			t.Helper()
			for i := range uploads {
				createUpload(t, fs, fmt.Sprint(i))
			}
			ctx, cancel := context.WithCancel(bg)
			synctest.Wait() // for numbers that are taken ahead
			h.updated = func() {
				if _, err := fs.Lookup(bg, Root, RootIno, "bucket"); err != nil {
					cancel()
				}
				time.Sleep(takes)
			}
			begun := time.Now()
			want(t, fs.DeleteBucket(ctx, "bucket"), nil)
			took := time.Since(begun)
			synctest.Wait()
			h.updated = nil
			if took > 2*followUpTime {
				t.Errorf("%v after its client went", took)
			}
			from, to := record.Table(record.TabUpload)
			want(t, fs.view(bg, func(r cluster.Reader) error {
				return r.Scan(from, to, cluster.ScanOptions{}, func(_, _ []byte) error { left = true; return nil })
			}), nil)
			return left
		}
		if remove(60, followUpTime/10) {
			t.Error("uploads of a removed bucket are left")
		}
		bucketFS(t, fs)
		remove(600, followUpTime/4)
	})
}
