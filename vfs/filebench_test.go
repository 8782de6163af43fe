package vfs_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"ogw/cluster/local"
	"ogw/vfs"
)

var benchCtx = context.Background()

func benchFS(b *testing.B) *vfs.FS {
	b.Helper()
	c, err := local.Open(benchCtx, local.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	fs, err := vfs.Open(benchCtx, c, vfs.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := fs.Close(benchCtx); err != nil {
			b.Error(err)
		}
		c.Close()
	})
	return fs
}

func benchFile(b *testing.B, fs *vfs.FS, name string) *vfs.File {
	b.Helper()
	_, f, _, err := fs.Create(benchCtx, vfs.Root, vfs.RootIno, name, vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenRead | vfs.OpenWrite})
	if err != nil {
		b.Fatal(err)
	}
	return f
}

const benchFileBytes = 256 << 20

func benchWrite(b *testing.B, f *vfs.File, chunk int) {
	p := make([]byte, chunk)
	for i := range p {
		p[i] = byte(i * 7)
	}
	for off := int64(0); off < benchFileBytes; off += int64(chunk) {
		if _, err := f.WriteAt(benchCtx, p, off); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(benchCtx); err != nil {
		b.Fatal(err)
	}
}

// A durable sequential write of 256 MiB.
func BenchmarkSequentialWrite(b *testing.B) {
	for _, chunk := range []int{128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", chunk>>10), func(b *testing.B) {
			fs := benchFS(b)
			b.SetBytes(benchFileBytes)
			for i := 0; b.Loop(); i++ {
				f := benchFile(b, fs, fmt.Sprint(i))
				benchWrite(b, f, chunk)
				if err := f.Close(benchCtx); err != nil {
					b.Fatal(err)
				}
				if err := fs.Unlink(benchCtx, vfs.Root, vfs.RootIno, fmt.Sprint(i)); err != nil {
					b.Fatal(err)
				}
				if _, err := fs.Collect(benchCtx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSequentialRead(b *testing.B) {
	for _, chunk := range []int{128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", chunk>>10), func(b *testing.B) {
			fs := benchFS(b)
			f := benchFile(b, fs, "f")
			benchWrite(b, f, 1<<20)
			p := make([]byte, chunk)
			b.SetBytes(benchFileBytes)
			for b.Loop() {
				for off := int64(0); off < benchFileBytes; off += int64(chunk) {
					if _, err := f.ReadAt(benchCtx, p, off); err != nil && err != io.EOF {
						b.Fatal(err)
					}
				}
			}
			f.Close(benchCtx)
		})
	}
}

// Small durable writes: 4 KiB at places all over a file, each synced.
func BenchmarkRandomWriteSync(b *testing.B) {
	fs := benchFS(b)
	f := benchFile(b, fs, "f")
	benchWrite(b, f, 1<<20)
	p := make([]byte, 4096)
	b.SetBytes(int64(len(p)))
	for i := int64(0); b.Loop(); i++ {
		if _, err := f.WriteAt(benchCtx, p, i*7919%(benchFileBytes>>12)<<12); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(benchCtx); err != nil {
			b.Fatal(err)
		}
	}
	f.Close(benchCtx)
}

// Make, write 4 KiB, sync, close.
func BenchmarkSmallFiles(b *testing.B) {
	fs := benchFS(b)
	p := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		f := benchFile(b, fs, fmt.Sprint(i))
		if _, err := f.WriteAt(benchCtx, p, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(benchCtx); err != nil {
			b.Fatal(err)
		}
	}
}
