package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"ogw/cluster"
)

// TestBlobs runs the whole contract of cluster.Blobs.
func TestBlobs(t *testing.T, open func(t *testing.T) cluster.Blobs) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b cluster.Blobs)
	}{
		{"Sizes", testSizes},
		{"ReadAt", testReadAt},
		{"Streaming", testStreaming},
		{"SizeHints", testSizeHints},
		{"TooLong", testTooLong},
		{"NotBeforeCommit", testNotBeforeCommit},
		{"Abort", testAbort},
		{"Exclusive", testExclusive},
		{"ExclusiveRace", testExclusiveRace},
		{"Delete", testDelete},
		{"CreateAgain", testCreateAgain},
		{"List", testList},
		{"ListChanging", testListChanging},
		{"Probe", testProbe},
		{"Locate", testLocate},
		{"Usage", testUsage},
		{"Claim", testClaim},
		{"BlobCancelled", testBlobCancelled},
		{"Concurrent", testConcurrent},
		{"BlobsClosed", testBlobsClosed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var crcTable = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// content returns n bytes that differ from those of other seeds.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 1}).Read(b)
	return b
}

func put(b cluster.Blobs, id cluster.BlobID, data []byte) error {
	w, err := b.Create(ctx, id, int64(len(data)))
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	size, crc, err := w.Commit(ctx)
	if err != nil {
		return err
	}
	if size != int64(len(data)) || crc != crc64.Checksum(data, crcTable) {
		return fmt.Errorf("commit of %d bytes returned %d, checksum %x", len(data), size, crc)
	}
	return nil
}

func mustPut(t *testing.T, b cluster.Blobs, id cluster.BlobID, data []byte) {
	t.Helper()
	if err := put(b, id, data); err != nil {
		t.Fatalf("put %v: %v", id, err)
	}
}

// wantBlob reads a blob whole, and one byte behind its end.
func wantBlob(t *testing.T, b cluster.Blobs, id cluster.BlobID, want []byte) {
	t.Helper()
	if err := checkBlob(b, id, want); err != nil {
		t.Error(err)
	}
}

func checkBlob(b cluster.Blobs, id cluster.BlobID, want []byte) error {
	got := make([]byte, len(want)+1)
	n, err := b.ReadAt(ctx, id, got, 0)
	if n != len(want) || err != io.EOF || !bytes.Equal(got[:n], want) {
		return fmt.Errorf("blob %v of %d bytes: read %d, %v, equal %v", id, len(want), n, err, bytes.Equal(got[:n], want))
	}
	return nil
}

func wantAbsent(t *testing.T, b cluster.Blobs, id cluster.BlobID) {
	t.Helper()
	if n, err := b.ReadAt(ctx, id, make([]byte, 1), 0); n != 0 || !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("ReadAt of absent %v: %d, %v", id, n, err)
	}
	if _, err := b.Locate(ctx, id); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("Locate of absent %v: %v", id, err)
	}
	for _, info := range list(t, b, cluster.BlobID{}) {
		if info.ID == id {
			t.Errorf("absent %v is listed", id)
		}
	}
}

func testSizes(t *testing.T, b cluster.Blobs) {
	for i, n := range sizes {
		mustPut(t, b, cluster.BlobID{Content: 1, Seq: uint64(i)}, content(uint64(i), n))
	}
	for i, n := range sizes {
		wantBlob(t, b, cluster.BlobID{Content: 1, Seq: uint64(i)}, content(uint64(i), n))
	}
	for i, info := range list(t, b, cluster.BlobID{}) {
		if info.Size != int64(sizes[i]) {
			t.Errorf("blob %v has size %d in the list, want %d", info.ID, info.Size, sizes[i])
		}
	}
}

func testReadAt(t *testing.T, b cluster.Blobs) {
	for seq, size := range []int{3*block + 100, 20*block + 4097} {
		id := cluster.BlobID{Content: 1, Seq: uint64(seq)}
		data := content(uint64(seq), size)
		mustPut(t, b, id, data)
		offsets := []int{0, 1, 100, 4096, block - 1, block, block + 1, 2 * block, size - 100, size - 1, size, size + 1, size + block}
		lengths := []int{0, 1, 99, 100, 101, 4096, block - 1, block, block + 1, 2 * block, size, size + 1}
		for _, off := range offsets {
			for _, n := range lengths {
				wantRange(t, b, id, data, off, n)
			}
		}
		if _, err := b.ReadAt(ctx, id, make([]byte, 1), -1); !errors.Is(err, cluster.ErrInvalid) {
			t.Errorf("negative offset: %v", err)
		}
	}
}

func wantRange(t *testing.T, b cluster.Blobs, id cluster.BlobID, data []byte, off, n int) {
	t.Helper()
	p := make([]byte, n)
	got, err := b.ReadAt(ctx, id, p, int64(off))
	want := data[min(off, len(data)):min(off+n, len(data))]
	var wantErr error
	if len(want) < n {
		wantErr = io.EOF
	}
	if got != len(want) || err != wantErr || !bytes.Equal(p[:got], want) {
		t.Errorf("%d bytes at %d of %d: %d, %v", n, off, len(data), got, err)
	}
	clear(p)
	got, err = cluster.ReadScattered(ctx, b, id, cluster.Buffers{p[:n/3], p[n/3 : n/2], p[n/2:]}, int64(off))
	if got != len(want) || err != wantErr || !bytes.Equal(p[:got], want) {
		t.Errorf("%d bytes at %d of %d, in pieces: %d, %v", n, off, len(data), got, err)
	}
}

func testStreaming(t *testing.T, b cluster.Blobs) {
	rng := rand.New(rand.NewPCG(7, 7))
	for seq, size := range []int{100, block, 300_000, 1 << 20, 3<<20 + 17, 6 << 20} {
		id := cluster.BlobID{Content: 2, Seq: uint64(seq)}
		data := content(uint64(seq), size)
		w, err := b.Create(ctx, id, -1)
		if err != nil {
			t.Fatal(err)
		}
		for rest := data; len(rest) > 0; {
			chunk := bytes.Clone(rest[:min(len(rest), 1+rng.IntN(100_000))])
			if n, err := w.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
			rest = rest[len(chunk):]
			clear(chunk) // the writer must not keep it
		}
		if n, err := w.Write(nil); n != 0 || err != nil {
			t.Errorf("empty Write: %d, %v", n, err)
		}
		if size2, crc, err := w.Commit(ctx); size2 != int64(size) || crc != crc64.Checksum(data, crcTable) || err != nil {
			t.Errorf("Commit: %d, %x, %v", size2, crc, err)
		}
		wantBlob(t, b, id, data)
	}
}

// testSizeHints: a wrong hint changes nothing but placement.
func testSizeHints(t *testing.T, b cluster.Blobs) {
	for i, hint := range []int64{-1, 0, 1, 4096, 1 << 20, 1<<20 + 1, cluster.MaxBlobBytes} {
		for k, size := range []int{0, 10, 70_000, 2 << 20} {
			id := cluster.BlobID{Content: 3, Seq: uint64(i*10 + k)}
			data := content(uint64(i*10+k), size)
			w, err := b.Create(ctx, id, hint)
			if err != nil {
				t.Fatalf("hint %d: %v", hint, err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.Commit(ctx); err != nil {
				t.Fatalf("hint %d, %d bytes: %v", hint, size, err)
			}
			wantBlob(t, b, id, data)
		}
	}
}

func testTooLong(t *testing.T, b cluster.Blobs) {
	id := cluster.BlobID{Content: 4, Seq: 1}
	if _, err := b.Create(ctx, id, cluster.MaxBlobBytes+1); !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("hint over the maximum: %v", err)
	}
	w, err := b.Create(ctx, id, -1)
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for range cluster.MaxBlobBytes / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(chunk[:1]); !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, _, err := w.Commit(ctx); err == nil {
		t.Error("Commit of a blob too long succeeded")
	}
	w.Abort()
	wantAbsent(t, b, id)
	longest := make([]byte, cluster.MaxBlobBytes)
	copy(longest[len(longest)-block:], content(1, block))
	mustPut(t, b, id, longest)
	for _, n := range []int{block - 1, block, block + 1, 20 * block} {
		wantRange(t, b, id, longest, len(longest)-block, n)
	}
}

func testNotBeforeCommit(t *testing.T, b cluster.Blobs) {
	for seq, size := range []int{0, 1000, 3 << 20} {
		id := cluster.BlobID{Content: 5, Seq: uint64(seq)}
		w, err := b.Create(ctx, id, int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content(1, size)); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, b, id)
		if _, _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, b, id, content(1, size))
		w.Abort() // does nothing
		wantBlob(t, b, id, content(1, size))
		if _, err := w.Write([]byte("more")); err == nil {
			t.Error("Write after Commit succeeded")
		}
		if _, _, err := w.Commit(ctx); err == nil {
			t.Error("second Commit succeeded")
		}
	}
}

func testAbort(t *testing.T, b cluster.Blobs) {
	for seq, size := range []int{0, 1000, 3 << 20} {
		id := cluster.BlobID{Content: 6, Seq: uint64(seq)}
		w, err := b.Create(ctx, id, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content(1, size)); err != nil {
			t.Fatal(err)
		}
		w.Abort()
		w.Abort()
		wantAbsent(t, b, id)
		if _, _, err := w.Commit(ctx); err == nil {
			t.Error("Commit after Abort succeeded")
		}
		wantAbsent(t, b, id)
		mustPut(t, b, id, content(2, size)) // the ID is free again
		wantBlob(t, b, id, content(2, size))
	}
}

func testExclusive(t *testing.T, b cluster.Blobs) {
	for seq, size := range []int{10, 2 << 20} {
		id := cluster.BlobID{Content: 7, Seq: uint64(seq)}
		mustPut(t, b, id, content(1, size))
		if err := put(b, id, content(2, size)); !errors.Is(err, cluster.ErrExists) {
			t.Errorf("second blob: %v", err)
		}
		wantBlob(t, b, id, content(1, size))
	}
}

func testExclusiveRace(t *testing.T, b cluster.Blobs) {
	for seq := range 10 {
		id := cluster.BlobID{Content: 8, Seq: uint64(seq)}
		size := 1000
		if seq%2 == 0 {
			size = 2 << 20
		}
		var mu sync.Mutex
		winners := []int{}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				err := put(b, id, content(uint64(w), size))
				switch {
				case err == nil:
					mu.Lock()
					winners = append(winners, w)
					mu.Unlock()
				case !errors.Is(err, cluster.ErrExists):
					t.Errorf("loser: %v", err)
				}
			})
		}
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("%d winners", len(winners))
		}
		wantBlob(t, b, id, content(uint64(winners[0]), size))
	}
}

func testDelete(t *testing.T, b cluster.Blobs) {
	ids := []cluster.BlobID{{Content: 9, Seq: 1}, {Content: 9, Seq: 2}, {Content: 9, Seq: 3}}
	for i, id := range ids {
		mustPut(t, b, id, content(uint64(i), []int{100, 3 << 20, 100}[i]))
		wantBlob(t, b, id, content(uint64(i), []int{100, 3 << 20, 100}[i]))
	}
	if err := b.Delete(ctx); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	if err := b.Delete(ctx, ids[0], cluster.BlobID{Content: 99}, ids[1], ids[0]); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if err := b.Delete(ctx, ids[0]); err != nil {
		t.Errorf("second Delete: %v", err)
	}
	wantAbsent(t, b, ids[0])
	wantAbsent(t, b, ids[1])
	wantBlob(t, b, ids[2], content(2, 100))
}

// testCreateAgain: the ID of a blob that was deleted takes another one, of the same
// length or not, and what was read of the first is no answer.
func testCreateAgain(t *testing.T, b cluster.Blobs) {
	id := cluster.BlobID{Content: 9, Seq: 1}
	for i, n := range []int{100, 100, 3 << 20, 3 << 20, 20 << 20, 5 * block, 3<<20 + 1, 0, 100} {
		data := content(uint64(i), n)
		mustPut(t, b, id, data)
		for range 2 { // the second time perhaps from a cache
			wantBlob(t, b, id, data)
			wantRange(t, b, id, data, max(0, n-500), 200)
		}
		if found := list(t, b, id); len(found) != 1 || found[0].Size != int64(n) {
			t.Errorf("blob of %d bytes that was created again: the list has %+v", n, found)
		}
		if err := b.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, b, id)
	}
}

// testEnds: a walk over at least three blobs ends when its function says so, and
// hands on its error.
func testEnds(t *testing.T, walk func(each func() error) error) {
	t.Helper()
	seen := 0
	if err := walk(func() error {
		if seen++; seen == 3 {
			return cluster.ErrStop
		}
		return nil
	}); err != nil || seen != 3 {
		t.Errorf("stopped: %d, %v", seen, err)
	}
	boom := errors.New("boom")
	if err := walk(func() error { return boom }); err != boom {
		t.Errorf("error of the function: %v", err)
	}
}

// testListChanging: blobs may be deleted and created by the function itself,
// and those that stay are shown.
// testProbe: what is whole is probed as it is listed, without damage.
func testLocate(t *testing.T, b cluster.Blobs) {
	for seq, size := range []int{100, 3 << 20} {
		id := cluster.BlobID{Content: 10, Seq: uint64(seq)}
		mustPut(t, b, id, content(1, size))
		locations, err := b.Locate(ctx, id)
		if err != nil || len(locations) == 0 {
			t.Fatalf("Locate: %v, %v", locations, err)
		}
		primaries := 0
		for _, l := range locations {
			if l.Node == "" || l.Path == "" {
				t.Errorf("location without node or path: %+v", l)
			}
			if l.Primary {
				primaries++
			}
		}
		if primaries == 0 {
			t.Errorf("no primary: %+v", locations)
		}
	}
}

func testUsage(t *testing.T, b cluster.Blobs) {
	u, err := b.Usage(ctx)
	if err != nil || u.Used < 0 || u.Free < 0 || u.Used+u.Free > u.Total {
		t.Errorf("Usage: %+v, %v", u, err)
	}
}

func testBlobCancelled(t *testing.T, b cluster.Blobs) {
	id := cluster.BlobID{Content: 11, Seq: 1}
	mustPut(t, b, id, content(1, 100))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	other := cluster.BlobID{Content: 11, Seq: 2}
	w, err := b.Create(ctx, other, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, create := b.Create(cancelled, cluster.BlobID{Content: 11, Seq: 3}, -1)
	_, read := b.ReadAt(cancelled, id, make([]byte, 1), 0)
	_, _, commit := w.Commit(cancelled)
	w.Abort()
	_, locate := b.Locate(cancelled, id)
	for name, err := range map[string]error{
		"Create": create, "ReadAt": read, "Commit": commit, "Locate": locate,
		"Delete": b.Delete(cancelled, id),
		"List":   b.List(cancelled, cluster.BlobID{}, func(cluster.BlobInfo) error { return nil }),
		"Probe":  cluster.ProbeBlobs(cancelled, b, cluster.BlobID{}, func(cluster.BlobInfo, error) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantAbsent(t, b, other)
	wantBlob(t, b, id, content(1, 100))
}

// testConcurrent writes, reads, lists and deletes at the same time.
func testConcurrent(t *testing.T, b cluster.Blobs) {
	const workers, each = 8, 12
	size := func(i int) int { return []int{0, 100, block + 1, 200_000, 1 << 20, 1<<20 + 5}[i%6] }
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				id := cluster.BlobID{Content: uint64(w), Seq: uint64(i)}
				data := content(uint64(w*100+i), size(w+i))
				if err := put(b, id, data); err != nil {
					t.Errorf("put: %v", err)
					return
				}
				if err := checkBlob(b, id, data); err != nil {
					t.Error(err)
				}
				if i%3 == 0 {
					if err := b.Delete(ctx, id); err != nil {
						t.Errorf("Delete: %v", err)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			last := cluster.BlobID{}
			first := true
			if err := b.List(ctx, cluster.BlobID{}, func(info cluster.BlobInfo) error {
				if !first && !last.Less(info.ID) {
					t.Errorf("%v listed after %v", info.ID, last)
				}
				last, first = info.ID, false
				return nil
			}); err != nil {
				t.Errorf("List: %v", err)
			}
		}
	})
	wg.Wait()
	for w := range workers {
		for i := range each {
			id := cluster.BlobID{Content: uint64(w), Seq: uint64(i)}
			if i%3 == 0 {
				wantAbsent(t, b, id)
			} else {
				wantBlob(t, b, id, content(uint64(w*100+i), size(w+i)))
			}
		}
	}
}

func testBlobsClosed(t *testing.T, b cluster.Blobs) {
	id := cluster.BlobID{Content: 12, Seq: 1}
	mustPut(t, b, id, content(1, 100))
	small, err := b.Create(ctx, cluster.BlobID{Content: 12, Seq: 2}, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	_, _, commit := small.Commit(ctx)
	small.Abort()
	_, create := b.Create(ctx, cluster.BlobID{Content: 12, Seq: 3}, -1)
	_, read := b.ReadAt(ctx, id, make([]byte, 1), 0)
	_, locate := b.Locate(ctx, id)
	_, usage := b.Usage(ctx)
	for name, err := range map[string]error{
		"Commit": commit, "Create": create, "ReadAt": read, "Locate": locate, "Usage": usage,
		"Delete": b.Delete(ctx, id), "Close": b.Close(),
		"List":  b.List(ctx, cluster.BlobID{}, func(cluster.BlobInfo) error { return nil }),
		"Probe": cluster.ProbeBlobs(ctx, b, cluster.BlobID{}, func(cluster.BlobInfo, error) error { return nil }),
	} {
		if !errors.Is(err, cluster.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
