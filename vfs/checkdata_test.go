package vfs

import (
	"bytes"
	"context"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// kindsOf counts the problems of a report by their kind.
func kindsOf(rep CheckReport) map[string]int {
	kinds := make(map[string]int)
	for _, p := range rep.Problems {
		kinds[p.Kind]++
	}
	return kinds
}

// TestCheckSparse: holes cost a check of the data nothing, however long they
// are, and count in the checksum.
func TestCheckSparse(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	bucket := mustLookup(t, fs, RootIno, "bucket")
	sparse := func(name string, size int64, data []byte, at ...int64) Ino {
		ino := mustFile(t, fs, bucket.Ino, name)
		f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
		for _, off := range at {
			_, err := f.WriteAt(bg, data, off)
			want(t, err, nil)
		}
		_, err := fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
		want(t, err, nil)
		want(t, f.Close(bg), nil)
		return ino
	}
	sparse("endless", MaxFileBytes, []byte("x"), 0, 1<<62)
	data := bytes.Repeat([]byte("data"), 20_000)
	ino := sparse("file", 5<<20, data, 100, 3<<20)
	body := make([]byte, 5<<20)
	copy(body[100:], data)
	copy(body[3<<20:], data)

	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for range 2 {
		for _, key := range []string{"endless", "file"} {
			info, err := fs.HeadObject(ctx, ObjectName{"bucket", key}, GetOptions{Checksums: true})
			want(t, err, nil)
			sum := checksum.CRC64Bytes(crc64nvme.Checksum(body))
			if n := len(info.Checksums); n != 1 || key == "file" && !bytes.Equal(info.Checksums[0].Value, sum) {
				t.Errorf("%s: checksums %+v, want %x", key, info.Checksums, sum)
			}
		}
		rep, err := fs.Check(ctx, CheckOptions{Data: true})
		want(t, err, nil)
		if len(rep.Problems) > 0 {
			t.Errorf("check: %+v", rep.Problems)
		}
	}
	want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
		n, err := record.GetInode(tx, ino)
		if err != nil {
			return err
		}
		n.CRC ^= 1
		return record.PutInode(tx, n)
	}), nil)
	rep, err := fs.Check(ctx, CheckOptions{Data: true})
	want(t, err, nil)
	if kinds := kindsOf(rep); len(kinds) != 1 || kinds["checksum"] != 1 {
		t.Errorf("check of another checksum: %+v", rep.Problems)
	}
}

// TestCheckFindsAllDamage: what is damaged behind other damage in the same
// file is noted as well.
func TestCheckFindsAllDamage(t *testing.T) {
	disk := mem.NewDisk()
	c := mem.New(mem.Options{Disk: disk})
	fs := openContentTest(t, c, Config{InlineBytes: 100})
	f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
	const pieces, size = 8, 5000 // all within one block
	for i := range int64(pieces) {
		_, err := f.WriteAt(bg, bytes.Repeat([]byte{byte(i + 1)}, size), i*size)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	want(t, f.Close(bg), nil)
	blobs := 0
	want(t, c.Blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error {
		if blobs++; blobs%2 == 0 {
			disk.CorruptBlob(b.ID, 10)
		}
		return nil
	}), nil)
	if blobs != pieces {
		t.Fatalf("%d blobs", blobs)
	}
	rep, err := fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	if kinds := kindsOf(rep); len(kinds) != 1 || kinds["corrupt-data"] != 1 {
		t.Errorf("check: %+v", rep.Problems)
	}
	if n := len(fs.Scrub(bg).Damaged); n != pieces/2 {
		t.Errorf("%d of %d damaged blobs are noted", n, pieces/2)
	}
}

// TestOverlap: extents that overlap are an error to readers, never a panic,
// and a finding.
func TestOverlap(t *testing.T) {
	fs := openContentTest(t, mem.New(mem.Options{}), Config{InlineBytes: 100})
	a := mustFile(t, fs, RootIno, "f")
	f := mustOpen(t, fs, a, OpenRead|OpenWrite)
	for i := range int64(3) {
		_, err := f.WriteAt(bg, bytes.Repeat([]byte{byte(i + 1)}, 5000), i*5000)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
	}
	want(t, f.Close(bg), nil)
	for _, from := range []string{"own", "reference"} {
		t.Run(from, func(t *testing.T) {
			ino := a
			if from == "reference" {
				b := mustOpen(t, fs, mustFile(t, fs, RootIno, "copy"), OpenRead|OpenWrite)
				src := mustOpen(t, fs, a, OpenRead)
				_, err := b.CopyRange(bg, 0, src, 0, 15_000)
				want(t, err, nil)
				ino = b.Ino()
				want(t, src.Close(bg), nil)
				want(t, b.Close(bg), nil)
			}
			want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
				n, err := record.GetInode(tx, a)
				if err != nil {
					return err
				}
				list, _, err := extents.Load(tx, n.Content, 0, n.Size, extents.PageExtents)
				if err != nil {
					return err
				}
				if n := len(list); n != 3 || list[0].Kind != record.ExtentBlob {
					t.Fatalf("%d extents", n)
				}
				list[0].Len, list[0].BlobSize = 11_000, 11_000
				return tx.Set(record.ExtentKey(n.Content, 0), list[0].Encode())
			}), nil)
			r := mustOpen(t, fs, ino, OpenRead)
			defer r.Close(bg) //nolint:errcheck // of a test
			for _, off := range []int64{0, 4000, 10_500, 12_000} {
				_, err := r.ReadAt(bg, make([]byte, 2000), off)
				want(t, err, ErrCorrupt)
			}
			rep, err := fs.Check(bg, CheckOptions{Data: true})
			want(t, err, nil)
			if kinds := kindsOf(rep); kinds["overlap"] == 0 || kinds["corrupt-data"] == 0 {
				t.Errorf("check: %+v", rep.Problems)
			}
		})
	}
}
