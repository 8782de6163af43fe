package local

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
	ns "ogw/vfs"
)

// The way of damaged blobs through quarantine, with the power cut before every
// mutating call: noted, their files deleted, set aside while the collector
// empties the segment around them, released.

const (
	quarantineSeeds = 3
	// Sizes of the blob in a segment, and of that in a file.
	quarantineSmall, quarantineLarge = 70_000, smallMax + 100_000
)

// quarantineRun is one store on its way.
type quarantineRun struct {
	fs   *crashFS
	cl   *cluster.Cluster
	ns   *ns.FS
	rng  *rand.Rand
	raw  map[cluster.BlobID][]byte // damaged bytes, as they are on the medium
	good map[string][]byte

	mu   sync.Mutex
	step quarantineStep // what was acknowledged
	cuts []quarantineCut
}

type quarantineStep int

const (
	stepDamaged quarantineStep = iota
	stepNoted
	stepAside
	stepReleasing
	stepReleased
)

type quarantineCut struct {
	fs   *crashFS
	step quarantineStep
	what string
}

func openQuarantined(fs *crashFS) (*cluster.Cluster, *ns.FS, error) {
	o := stackOptions(fs)
	o.collectEvery = 2 * time.Millisecond
	cl, err := Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	n, err := ns.Open(ctx, cl, stackConfig())
	if err != nil {
		return nil, nil, errors.Join(err, cl.Close())
	}
	return cl, n, nil
}

func (r *quarantineRun) put(key string, size int) []byte {
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size), byte(r.rng.Uint32())}).Read(data)
	if _, err := r.ns.PutObject(ctx, ns.ObjectName{Bucket: "bucket", Key: key}, bytes.NewReader(data), ns.PutOptions{Size: int64(size)}); err != nil {
		panic(err)
	}
	return data
}

// rawBytes are those of a blob where a store has it, damaged or not.
func rawBytes(fs *crashFS, cl *cluster.Cluster, id cluster.BlobID) ([]byte, error) {
	b := cl.Blobs.(*Blobs)
	p, err := b.index.get(id)
	if err != nil {
		return nil, err
	}
	f, err := fs.openFile(b.placePath(id, &p), false)
	if err != nil {
		return nil, err
	}
	data := make([]byte, p.Size)
	_, err = f.ReadAt(data, p.Offset)
	return data, err
}

// damage changes a byte of an object's blob, durably.
func (r *quarantineRun) damage(key string, at int64) error {
	_, where, err := r.ns.Whereis(ctx, "bucket/"+key)
	if err != nil {
		return err
	}
	id := cluster.BlobID{}
	if err := r.cl.Blobs.List(ctx, id, func(b cluster.BlobInfo) error {
		if b.ID.String() == where[0].Blob {
			id = b.ID
		}
		return nil
	}); err != nil {
		return err
	}
	b := r.cl.Blobs.(*Blobs)
	p, err := b.index.get(id)
	if err != nil {
		return err
	}
	raw, err := rawBytes(r.fs, r.cl, id)
	if err != nil {
		return err
	}
	raw[at] ^= 4
	r.raw[id] = raw
	f, err := r.fs.openFile(b.placePath(id, &p), false)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(raw[at:at+1], p.Offset+at); err != nil {
		return err
	}
	return f.Sync()
}

func (r *quarantineRun) acknowledged(s quarantineStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = s
}

// run goes the whole way, and takes a cut before every mutating call.
func (r *quarantineRun) run() (err error) {
	if r.cl, r.ns, err = openQuarantined(r.fs); err != nil {
		return err
	}
	if _, err := r.ns.CreateBucket(ctx, "bucket", nil); err != nil {
		return err
	}
	for i := range 4 {
		r.good[fmt.Sprint("good", i)] = r.put(fmt.Sprint("good", i), 30_000+i)
	}
	r.put("small", quarantineSmall)
	r.put("large", quarantineLarge)
	for i := range 4 { // so that segments are left
		r.good[fmt.Sprint("more", i)] = r.put(fmt.Sprint("more", i), smallMax/2+i)
	}
	if err := errors.Join(r.damage("small", 5), r.damage("large", smallMax+7)); err != nil {
		return err
	}
	r.fs.mu.Lock()
	r.fs.before = func(c *fsCall) (int, error) {
		if c.kind.mutates() {
			cut := quarantineCut{what: fmt.Sprintf("%s of %s", c.kind, c.path), fs: r.fs.clone(anyMode(r.rng), r.rng)}
			r.mu.Lock()
			cut.step = r.step
			r.cuts = append(r.cuts, cut)
			r.mu.Unlock()
		}
		return c.bytes, nil
	}
	r.fs.mu.Unlock()
	if _, err := r.ns.Check(ctx, ns.CheckOptions{Data: true}); err != nil {
		return err
	}
	r.acknowledged(stepNoted)
	for _, key := range []string{"small", "large"} {
		if _, err := r.ns.DeleteObject(ctx, ns.ObjectName{Bucket: "bucket", Key: key}, ns.DeleteOptions{}); err != nil {
			return err
		}
	}
	if _, err := r.ns.Collect(ctx); err != nil {
		return err
	}
	r.acknowledged(stepAside)
	if err := r.emptied(); err != nil {
		return err
	}
	r.acknowledged(stepReleasing)
	if n, _, err := r.ns.Release(ctx); n != len(r.raw) || err != nil {
		return fmt.Errorf("released %d: %w", n, err)
	}
	r.acknowledged(stepReleased)
	for range 3 {
		r.cl.Blobs.(*Blobs).collector.pass()
	}
	return errors.Join(r.ns.Close(ctx), r.cl.Close())
}

// emptied waits until the collector left nothing but the damage.
func (r *quarantineRun) emptied() error {
	b := r.cl.Blobs.(*Blobs)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for id := range r.raw {
			p, err := b.index.get(id)
			if err != nil {
				return err
			}
			if g, _ := b.segments.Figures(p.Segment); g.Damaged && g.Live == record.Bytes(quarantineSmall) {
				return nil
			}
		}
	}
	return errors.New("the segment was not emptied in time")
}

// check opens what a cut left.
func (r *quarantineRun) check(cut *quarantineCut) error {
	cl, n, err := openQuarantined(cut.fs)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer cl.Close()
	// All that may take them for garbage.
	if err := sweepAll(cl); err != nil {
		return err
	}
	if _, err := n.Collect(ctx); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	rep, err := n.Check(ctx, ns.CheckOptions{Repair: true, Data: true})
	if err != nil {
		return err
	}
	for _, p := range rep.Problems {
		known := p.Kind == "damaged-blob" || p.Kind == "corrupt-data"
		if !p.Repaired && (!known || cut.step >= stepAside) {
			return fmt.Errorf("check: %s: %s", p.Kind, p.Detail)
		}
	}
	list, err := n.Quarantine(ctx, true)
	if err != nil {
		return err
	}
	for id, want := range r.raw {
		i := slices.IndexFunc(list, func(d ns.DamagedBlob) bool { return d.ID == id })
		raw, err := rawBytes(cut.fs, cl, id)
		gone := errors.Is(err, cluster.ErrNotFound)
		switch {
		case err != nil && !gone:
			return err
		case gone != (i < 0):
			return fmt.Errorf("blob %v: gone %v, listed %v", id, gone, i >= 0)
		case gone && cut.step < stepReleasing:
			return fmt.Errorf("blob %v is gone", id)
		case !gone && cut.step == stepReleased:
			return fmt.Errorf("blob %v is back", id)
		case !gone && !bytes.Equal(raw, want):
			return fmt.Errorf("blob %v has other bytes", id)
		case !gone && cut.step >= stepAside && !list[i].Aside:
			return fmt.Errorf("blob %v is not set aside", id)
		}
	}
	for key, want := range r.good {
		o, err := n.GetObject(ctx, ns.ObjectName{Bucket: "bucket", Key: key}, ns.GetOptions{})
		if err != nil {
			return err
		}
		got := make([]byte, len(want))
		_, err = o.ReadAt(got, 0)
		o.Close()
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: wrong bytes: %w", key, err)
		}
	}
	return n.Close(ctx)
}

// TestQuarantinePowerCuts cuts the power everywhere on the way of damaged
// blobs: their bytes are there until their release, and after it is
// acknowledged they are gone for good.
func TestQuarantinePowerCuts(t *testing.T) {
	seeds := quarantineSeeds
	if testing.Short() {
		seeds = 1
	}
	for range seeds {
		seed := rand.Uint64()
		r := &quarantineRun{fs: newCrashFS(), rng: rand.New(rand.NewPCG(seed, 9)), raw: map[cluster.BlobID][]byte{}, good: map[string][]byte{}}
		if err := r.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steps := map[quarantineStep]int{}
		for i := range r.cuts {
			cut := &r.cuts[i]
			steps[cut.step]++
			if err := r.check(cut); err != nil {
				t.Fatalf("seed %d, cut %d of %d before %s, step %d: %v", seed, i, len(r.cuts), cut.what, cut.step, err)
			}
		}
		t.Logf("seed %d: %d cuts, by step: %v", seed, len(r.cuts), steps)
	}
}
