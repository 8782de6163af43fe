package main

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
	"ogw/cluster/local"
)

const (
	directBuf = 4 * mib // what one O_DIRECT write takes
	// segmentFile is the prewritten file that the segment gauge writes into.
	segmentFile = 256 * mib
	pageBytes   = 4096
)

// limitsSuite prints what the machine can do without us. The other suites
// measure these again, in turn with what they bound.
func limitsSuite(e *env) error {
	bare, err := e.bareEngine()
	if err != nil {
		return err
	}
	defer bare.close()
	for _, p := range []pair{
		{name: "MD5, one core", figure: hashing(e, "", largeBytes, 1, md5.New), bytes: largeBytes},
		{name: "SHA-256, one core", figure: hashing(e, "", largeBytes, 1, sha256.New), bytes: largeBytes},
		{name: "CRC64NVME, one core", figure: hashing(e, "", largeBytes, 1, newCRC), bytes: largeBytes},
		{name: "disk, 64 MiB O_DIRECT + fdatasync, 1 writer", figure: e.directFiles(largeBytes, 1), bytes: largeBytes},
		{name: "disk, 64 MiB O_DIRECT + fdatasync, 4 writers", figure: e.directFiles(largeBytes, 4), bytes: largeBytes},
		{name: "disk, dd of 64 MiB, conv=fdatasync", figure: e.dd(), bytes: largeBytes},
		{name: "disk, file of 4 KiB + fdatasync, 16 writers", figure: e.syncedFiles(smallBytes, 16), bytes: smallBytes},
		{name: "segment, 64 KiB O_DIRECT|O_DSYNC, 16 writers", figure: e.segmentWrites(64*kib, 16), bytes: 64 * kib},
		{name: "segment, 1 MiB O_DIRECT|O_DSYNC, 16 writers", figure: e.segmentWrites(mib, 16), bytes: mib},
		{name: "engine transaction, 2 reads and 3 writes, 1 client", figure: bare.transactions(1, 100)},
		{name: "engine transaction, 2 reads and 3 writes, 16 clients", figure: bare.transactions(16, 100)},
		{name: "the same with 4 KiB in it, 16 clients", figure: bare.transactions(16, smallBytes)},
		{name: "engine blob of 64 KiB, 16 clients", figure: bare.blobs(64*kib, 16), bytes: 64 * kib},
	} {
		if err := e.measure(p); err != nil {
			return err
		}
	}
	return nil
}

func newCRC() hash.Hash { return crc64nvme.New() }

// hashing hashes size bytes an operation, at most one stream for each core.
func hashing(e *env, name string, size, streams int, newHash func() hash.Hash) gauge {
	b := make([]byte, min(size, mib))
	rand.Read(b)
	streams = min(streams, runtime.NumCPU())
	return gauge{name: name, run: func(span time.Duration) (float64, error) {
		return e.parallel(streams, span, func(int, int) error {
			h := newHash()
			for n := 0; n < size; n += len(b) {
				h.Write(b)
			}
			h.Sum(nil)
			return nil
		})
	}}
}

// directFiles writes files past the page cache and syncs each.
func (e *env) directFiles(size, clients int) gauge {
	return e.files("disk, O_DIRECT", size, clients, syscall.O_DIRECT)
}

// syncedFiles writes files through the page cache and syncs each.
func (e *env) syncedFiles(size, clients int) gauge {
	return e.files("a synced file each", size, clients, 0)
}

func (e *env) files(name string, size, clients, flags int) gauge {
	buf := alignedBuffer(min(size, directBuf))
	rand.Read(buf)
	return gauge{name: name, run: func(span time.Duration) (float64, error) {
		return e.parallel(clients, span, func(client, _ int) error {
			path := filepath.Join(e.dir, fmt.Sprintf("limit-%d", client))
			f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|flags, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			for n := 0; n < size; n += len(buf) {
				if _, err := f.Write(buf); err != nil {
					return err
				}
			}
			return syscall.Fdatasync(int(f.Fd()))
		})
	}}
}

// dd is the tool that everybody has.
func (e *env) dd() gauge {
	return gauge{name: "dd conv=fdatasync", run: func(span time.Duration) (float64, error) {
		return e.parallel(1, span, func(int, int) error {
			out, err := exec.CommandContext(e.ctx, "dd", "if=/dev/zero", "of="+filepath.Join(e.dir, "dd"),
				"bs=1M", "count=64", "conv=fdatasync").CombinedOutput()
			if err != nil {
				return fmt.Errorf("dd: %w: %s", err, out)
			}
			return nil
		})
	}}
}

// segmentWrites writes to one file that was written before, durably and past
// the page cache: the fastest way to durable bytes that the engine knows.
func (e *env) segmentWrites(size, clients int) gauge {
	var file *os.File
	var next atomic.Int64
	buf := alignedBuffer(size)
	rand.Read(buf)
	slots := int64(segmentFile / size)
	return gauge{name: "bare segment", run: func(span time.Duration) (float64, error) {
		if file == nil {
			var err error
			if file, err = e.prewritten(); err != nil {
				return 0, err
			}
		}
		return e.parallel(clients, span, func(int, int) error {
			_, err := file.WriteAt(buf, (next.Add(1)-1)%slots*int64(size))
			return err
		})
	}}
}

func (e *env) prewritten() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(e.dir, "segment"), os.O_CREATE|os.O_RDWR|syscall.O_DIRECT|syscall.O_DSYNC, 0o600)
	if err != nil {
		return nil, err
	}
	buf := alignedBuffer(directBuf)
	rand.Read(buf)
	for off := int64(0); off < segmentFile; off += directBuf {
		if _, err := f.WriteAt(buf, off); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil // open until the process ends
}

// alignedBuffer returns n bytes at a multiple of a page, as O_DIRECT wants.
func alignedBuffer(n int) []byte {
	b := make([]byte, n+pageBytes)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (pageBytes - 1))
	return b[skip : skip+n : skip+n]
}

// bareEngine is the embedded engine with nothing above it.
type bareEngine struct {
	e       *env
	cluster *cluster.Cluster
	next    atomic.Uint64
}

func (e *env) bareEngine() (*bareEngine, error) {
	dir, err := os.MkdirTemp(e.dir, "engine-*")
	if err != nil {
		return nil, err
	}
	c, err := local.Open(e.ctx, local.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return &bareEngine{e: e, cluster: c}, nil
}

func (b *bareEngine) close() { b.cluster.Close() }

// transactions are what making a file takes at the least: the parent is read,
// the name is found free, and an inode (with bytes bytes), an entry and the
// parent's time are written. Durable.
func (b *bareEngine) transactions(clients, bytes int) gauge {
	value := make([]byte, bytes)
	rand.Read(value)
	return gauge{name: "bare engine transaction", run: func(span time.Duration) (float64, error) {
		return b.e.parallel(clients, span, func(client, _ int) error {
			n := b.next.Add(1)
			return b.cluster.KV.Update(b.e.ctx, func(t cluster.Txn) error {
				key := func(kind byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, n) }
				for _, k := range [][]byte{key('i', 1), key('d', n)} {
					if _, err := t.Get(k); err != nil {
						return err
					}
				}
				if err := t.Set(key('i', n), value); err != nil {
					return err
				}
				if err := t.Set(key('d', n), value[:20]); err != nil {
					return err
				}
				return t.Set(key('t', uint64(client)), value[:8])
			})
		})
	}}
}

// blobs stores blobs without a transaction that would name them.
func (b *bareEngine) blobs(size, clients int) gauge {
	data := make([]byte, size)
	rand.Read(data)
	return gauge{name: "engine blob", run: func(span time.Duration) (float64, error) {
		return b.e.parallel(clients, span, func(int, int) error {
			ctx := b.e.ctx
			w, err := b.cluster.Blobs.Create(ctx, cluster.BlobID{Content: 1, Seq: b.next.Add(1)}, int64(size))
			if err != nil {
				return err
			}
			defer w.Abort()
			if _, err := w.Write(data); err != nil {
				return err
			}
			_, _, err = w.Commit(ctx)
			return err
		})
	}}
}
