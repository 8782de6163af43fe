package vfs

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// benchLocal opens a namespace over the embedded engine as it ships.
func benchLocal(b *testing.B) *FS {
	c, err := local.Open(bg, local.Options{Dir: b.TempDir()})
	want(b, err, nil)
	return openTest(b, c)
}

func benchCreate(b *testing.B, ctx context.Context) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _, _, err := fs.Create(ctx, Root, d, fmt.Sprintf("file%09d", n.Add(1)), CreateOptions{Mode: 0o644, NoOpen: true})
			want(b, err, nil)
		}
	})
}

func BenchmarkCreateDurable(b *testing.B) { benchCreate(b, bg) }
func BenchmarkCreateRelaxed(b *testing.B) { benchCreate(b, cluster.Relaxed(bg)) }

func BenchmarkUnlinkRelaxed(b *testing.B) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	fillDir(b, fs, d, b.N)
	b.ResetTimer()
	for i := range b.N {
		want(b, fs.Unlink(cluster.Relaxed(bg), Root, d, fmt.Sprintf("file%09d", i)), nil)
	}
}

// What a mount asks for when a program makes a file, opens it again and
// removes it; the files live for a while.
func BenchmarkLifeOfAFile(b *testing.B) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	ctx := cluster.Relaxed(bg)
	cred := CheckedCred(0, 0)
	const living = 2000
	b.ReportAllocs()
	b.ResetTimer()
	for from := 0; from < b.N; from += living {
		to := min(b.N, from+living)
		files := make([]Ino, to-from)
		for i := from; i < to; i++ {
			name := fmt.Sprintf("file%09d", i)
			_, err := fs.Lookup(ctx, cred, d, name)
			want(b, err, ErrNotExist)
			_, err = fs.GetAttr(ctx, d)
			want(b, err, nil)
			a, f, _, err := fs.Create(ctx, cred, d, name, CreateOptions{Mode: 0o644, Exclusive: true, Flags: OpenRead | OpenWrite})
			want(b, err, nil)
			want(b, f.Close(ctx), nil)
			files[i-from] = a.Ino
		}
		for _, ino := range files {
			f, err := fs.Open(ctx, cred, ino, OpenRead)
			want(b, err, nil)
			want(b, f.Close(ctx), nil)
		}
		for i := from; i < to; i++ {
			_, err := fs.GetAttr(ctx, d)
			want(b, err, nil)
			want(b, fs.Unlink(ctx, cred, d, fmt.Sprintf("file%09d", i)), nil)
		}
	}
}

const benchFiles = 100_000

// fill makes n files in d, 1000 in a transaction.
func fillDir(b testing.TB, fs *FS, d Ino, n int) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		want(b, fs.update(cluster.Relaxed(bg), func(t cluster.Txn, o *op) error {
			for i := from; i < min(n, from+1000); i++ {
				id, err := o.newID()
				if err != nil {
					return err
				}
				f := o.newInode(id, ModeRegular|0o644, Root)
				f.Parent, f.Name = d, fmt.Sprintf("file%09d", i)
				if err := record.PutInode(t, f); err != nil {
					return err
				}
				if err := record.PutDentry(t, d, &record.Dentry{Name: f.Name, Ino: f.Ino, Mode: ModeRegular}); err != nil {
					return err
				}
			}
			return nil
		}), nil)
	}
}

func BenchmarkLookup(b *testing.B) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	fillDir(b, fs, d, benchFiles)
	ctx := cluster.Relaxed(bg)
	b.ResetTimer()
	for i := range b.N {
		_, err := fs.Lookup(ctx, Root, d, fmt.Sprintf("file%09d", i*7919%benchFiles))
		want(b, err, nil)
	}
}

// maxLookupAllocations is what a lookup takes of the heap, five for its keys and what is
// read of them.
const maxLookupAllocations = 11

// TestLookupAllocations: a lookup makes neither the entry nor the inode on the heap. An
// allocation more is one for each LOOKUP of NFS.
func TestLookupAllocations(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	d := mustMkdir(t, fs, RootIno, "bucket")
	mustFile(t, fs, d, "file")
	n := testing.AllocsPerRun(500, func() {
		_, err := fs.Lookup(bg, Root, d, "file")
		want(t, err, nil)
	})
	if n > maxLookupAllocations {
		t.Errorf("%v allocations, want at most %d", n, maxLookupAllocations)
	}
}

func BenchmarkGetAttr(b *testing.B) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	f := mustFile(b, fs, d, "f")
	ctx := cluster.Relaxed(bg)
	b.ResetTimer()
	for range b.N {
		_, err := fs.GetAttr(ctx, f)
		want(b, err, nil)
	}
}

func benchReadDir(b *testing.B, attrs bool) {
	fs := benchLocal(b)
	d := mustMkdir(b, fs, RootIno, "bucket")
	fillDir(b, fs, d, benchFiles)
	b.ResetTimer()
	for range b.N {
		n := 0
		want(b, fs.ReadDir(cluster.Relaxed(bg), Root, d, ReadDirOptions{Attrs: attrs}, func(DirEntry) error { n++; return nil }), nil)
		if n != benchFiles {
			b.Fatalf("%d entries", n)
		}
	}
	b.ReportMetric(float64(benchFiles)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkReadDir(b *testing.B)     { benchReadDir(b, false) }
func BenchmarkReadDirPlus(b *testing.B) { benchReadDir(b, true) }

// A directory is renamed in the same time whatever it holds.
func BenchmarkRenameDirectoryOfAMillion(b *testing.B) {
	fs := benchLocal(b)
	from, to := mustMkdir(b, fs, RootIno, "from"), mustMkdir(b, fs, RootIno, "to")
	d := mustMkdir(b, fs, from, "d")
	start := time.Now()
	fillDir(b, fs, d, 1_000_000)
	b.Logf("filled in %v", time.Since(start))
	b.ResetTimer()
	for range b.N {
		want(b, fs.Rename(bg, Root, EntryName{from, "d"}, EntryName{to, "d"}, 0), nil)
		from, to = to, from
	}
}
