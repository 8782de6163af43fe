package vfs

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// memQuarantine is a store in memory with an object of one blob, damaged.
type memQuarantine struct {
	t      *testing.T
	fs     *FS
	disk   *mem.Disk
	faults *mem.Faults
	c      *cluster.Cluster
	id     cluster.BlobID
	// exclusive reports whether one process uses it.
	exclusive bool
	looked    map[cluster.BlobID]int // verifications
	// verified runs after one; its error becomes the verification's.
	verified func(id cluster.BlobID, err error) error
}

func openMemQuarantine(t *testing.T, exclusive bool) *memQuarantine {
	m := &memQuarantine{t: t, disk: mem.NewDisk(), faults: &mem.Faults{}, looked: make(map[cluster.BlobID]int)}
	m.c = mem.New(mem.Options{Disk: m.disk, Faults: m.faults})
	m.exclusive = exclusive
	m.c.Blobs = &hookBlobs{Blobs: m.c.Blobs, verified: func(id cluster.BlobID, err error) error {
		m.looked[id]++
		if m.verified != nil {
			return m.verified(id, err)
		}
		return err
	}}
	m.fs = bucketFS(t, m.open())
	put(t, m.fs, "key", "more than ten bytes")
	m.id = m.blobs()[0]
	m.flip()
	return m
}

func (m *memQuarantine) open() *FS {
	m.t.Helper()
	c := m.c
	if !m.exclusive {
		c = beside(m.t, c)
	}
	fs, err := Open(bg, c, Config{NoBackground: true, InlineBytes: 10, Now: later})
	want(m.t, err, nil)
	m.t.Cleanup(func() { _ = fs.Close(bg) })
	return fs
}

func (m *memQuarantine) blobs() (ids []cluster.BlobID) {
	m.t.Helper()
	want(m.t, m.c.Blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error { ids = append(ids, b.ID); return nil }), nil)
	return ids
}

// flip damages the blob, and mends it.
func (m *memQuarantine) flip() { m.disk.CorruptBlob(m.id, 3) }

func (m *memQuarantine) read() {
	m.t.Helper()
	if _, _, err := tryGet(bg, m.fs, "key"); !errors.Is(err, ErrCorrupt) {
		m.t.Errorf("read of damage: %v", err)
	}
}

func (m *memQuarantine) remove() {
	m.t.Helper()
	_, err := m.fs.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
	want(m.t, err, nil)
	_, err = m.fs.Collect(bg)
	want(m.t, err, nil)
}

// stored is what the store has.
func (m *memQuarantine) stored() map[cluster.BlobID]record.Damaged {
	m.t.Helper()
	list := make(map[cluster.BlobID]record.Damaged)
	from, to := record.Table(record.TabDamaged)
	want(m.t, m.c.KV.View(bg, func(r cluster.Reader) error {
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			id, err := record.ParseDamagedKey(k)
			list[id] = record.DecodeDamaged(v)
			return err
		})
	}), nil)
	return list
}

// TestQuarantineNotedWhileListed: what a reader notes while the quarantine is
// listed is kept when its file goes.
func TestQuarantineNotedWhileListed(t *testing.T) {
	m := openMemQuarantine(t, true)
	h := hook(m.fs)
	h.viewed = func() { // after the list is read, before it is taken over
		h.viewed = nil
		m.read()
	}
	_, err := m.fs.Quarantine(bg, true)
	want(t, err, nil)
	if h.viewed != nil { // it was not read
		h.viewed()
	}
	m.remove()
	if !slices.Equal(m.blobs(), []cluster.BlobID{m.id}) || !m.stored()[m.id].Aside {
		t.Errorf("blobs %v, quarantine %+v", m.blobs(), m.stored())
	}
}

// TestQuarantineOrder: the list follows the store, whoever writes and lists.
func TestQuarantineOrder(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		m := openMemQuarantine(t, exclusive)
		q := m.fs.quarantine
		h := hook(m.fs)
		h.viewed = func() { // others get ahead between the store and the list
			for range 100 {
				runtime.Gosched()
			}
		}
		h.updated = h.viewed
		id := cluster.BlobID{Content: 1 << 40, Seq: 7}
		for round := range 200 {
			var wait sync.WaitGroup
			wait.Go(func() {
				if err := q.Refresh(bg); err != nil {
					t.Error(err)
				}
			})
			for w := range 4 {
				wait.Go(func() {
					_, err := q.Write(bg, id, func(old *record.Damaged) *record.Damaged {
						if old != nil && w == 3 {
							return nil
						}
						return &record.Damaged{Size: int64(10*round + w)}
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			stored, known := m.stored(), q.Damaged()
			if len(stored) != len(known) || len(known) > 0 && stored[id].Size != known[0].Size {
				t.Fatalf("exclusive %v, round %d: on the list %+v, in the store %+v", exclusive, round, known, stored)
			}
		}
	}
}

// TestQuarantineSetAsideWhileLookedAt: a blob that reads well again, and whose
// file goes before that is written down, is kept or deleted, never forgotten.
func TestQuarantineSetAsideWhileLookedAt(t *testing.T) {
	m := openMemQuarantine(t, true)
	m.read()
	m.flip()
	m.verified = func(id cluster.BlobID, err error) error {
		want(t, err, nil)
		m.verified = nil
		m.remove()
		return nil
	}
	for range 2 {
		rep, err := m.fs.Check(bg, CheckOptions{})
		want(t, err, nil)
		if blobs, q := m.blobs(), m.stored(); len(rep.Problems) > 0 || len(blobs) != 1 || !q[m.id].Aside || rep.Aside != 1 {
			t.Errorf("check: %+v, blobs %v, quarantine %+v", rep, blobs, q)
		}
	}
	_, err := m.fs.Check(bg, CheckOptions{Repair: true})
	want(t, err, nil)
	if blobs, q := m.blobs(), m.stored(); len(blobs)+len(q) > 0 {
		t.Errorf("after a repair: blobs %v, quarantine %+v", blobs, q)
	}
}

// TestQuarantineWithoutWrites: on a store that takes no writes damage is looked
// at once and known until this process ends, the scrub and a check go on, and
// all is stored once that is possible.
func TestQuarantineWithoutWrites(t *testing.T) {
	m := openMemQuarantine(t, true)
	put(t, m.fs, "other", "which is all right")
	m.faults.FailFrom(1, cluster.ErrReadOnly, mem.OpUpdate)
	for range 5 {
		m.read()
	}
	if n := m.looked[m.id]; n != 1 {
		t.Errorf("5 reads of damage verified it %d times", n)
	}
	for range 2 {
		_ = m.fs.scrub.Pass(bg, 0) // its state cannot be stored
		if s := m.fs.Scrub(bg); s.Running || s.Blobs != 2 || len(s.Damaged) != 1 {
			t.Errorf("scrub: %+v", s)
		}
		for _, data := range []bool{false, true} {
			rep, err := m.fs.Check(bg, CheckOptions{Data: data})
			want(t, err, nil)
			if kinds := kindsOf(rep); len(kinds) != 1 || kinds["damaged-blob"]+kinds["corrupt-data"] != 1 {
				t.Errorf("check: %+v", rep.Problems)
			}
		}
	}
	list := m.fs.quarantine.List(bg)
	if len(list) != 1 || !slices.Equal(list[0].Files, []string{"bucket/key"}) {
		t.Errorf("quarantine: %+v", list)
	}
	m.faults.Clear()
	want(t, m.fs.quarantine.Save(bg), nil)
	if rec := m.stored()[m.id]; rec.By != "read" || len(rec.Inodes) != 1 {
		t.Errorf("stored later: %+v", rec)
	}
	// Mended, and it cannot be stored.
	m.flip()
	m.faults.FailFrom(1, cluster.ErrReadOnly, mem.OpUpdate)
	rep, err := m.fs.Check(bg, CheckOptions{})
	want(t, err, nil)
	if len(rep.Problems) > 0 {
		t.Errorf("check of the mended: %+v", rep.Problems)
	}
	m.faults.Clear()
	want(t, m.fs.scrub.Pass(bg, 0), nil)
	if q := m.stored(); len(q) > 0 || len(m.fs.Scrub(bg).Damaged) > 0 {
		t.Errorf("quarantine of the mended: %+v", q)
	}
}

// TestQuarantineAsideFails: a blob whose setting aside cannot be stored is not
// deleted, and set aside later.
func TestQuarantineAsideFails(t *testing.T) {
	m := openMemQuarantine(t, true)
	m.read()
	_, err := m.fs.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
	want(t, err, nil)
	m.faults.FailFrom(1, cluster.ErrNoSpace, mem.OpUpdate)
	for range 2 {
		_, err := m.fs.Collect(bg)
		want(t, err, ErrNoSpace)
	}
	m.faults.Clear()
	if q := m.stored(); len(q) != 1 || q[m.id].Aside {
		t.Errorf("before: %+v", q)
	}
	_, err = m.fs.Collect(bg)
	want(t, err, nil)
	if q := m.stored(); !slices.Equal(m.blobs(), []cluster.BlobID{m.id}) || !q[m.id].Aside {
		t.Errorf("blobs %v, quarantine %+v", m.blobs(), q)
	}
}

// TestCheckWritesNothing: a check that finds nothing new writes nothing.
func TestCheckWritesNothing(t *testing.T) {
	m := openMemQuarantine(t, true)
	m.read()
	_, err := m.fs.Check(bg, CheckOptions{})
	want(t, err, nil)
	m.faults.FailAt(1000, nil, mem.OpUpdate)
	_, err = m.fs.Check(bg, CheckOptions{Data: true})
	want(t, err, nil)
	if n := m.faults.Calls(); n != 0 {
		t.Errorf("%d transactions", n)
	}
}

// TestQuarantineDroppedElsewhere: what another process took off the list is
// deleted with its file; what another noted is looked for in one go.
func TestQuarantineDroppedElsewhere(t *testing.T) {
	m := openMemQuarantine(t, false)
	m.read() // and this process does not forget it
	m.flip()
	two := m.open()
	_, err := two.Check(bg, CheckOptions{})
	want(t, err, nil)
	if q := m.stored(); len(q) > 0 {
		t.Fatalf("quarantine of the mended: %+v", q)
	}
	m.remove()
	if blobs := m.blobs(); len(blobs) > 0 {
		t.Errorf("blobs %v are left", blobs)
	}
	h, views := hook(m.fs), 0
	h.viewed = func() { views++ }
	var ids []cluster.BlobID
	for range 100 {
		ids = append(ids, leaveBlob(t, m.fs, 0))
	}
	_, err = two.quarantine.Write(bg, ids[50], func(*record.Damaged) *record.Damaged { return &record.Damaged{Error: "damaged"} })
	want(t, err, nil)
	views = 0
	deleted, err := m.fs.quarantine.Drop(bg, ids...)
	want(t, err, nil)
	if deleted != 99 || views != 1 || !slices.Equal(m.blobs(), ids[50:51]) || !m.stored()[ids[50]].Aside {
		t.Errorf("%d deleted after %d views, %v left", deleted, views, m.blobs())
	}
}

// TestQuarantineNotedTwice: what one process set aside another does not put
// back into use.
func TestQuarantineNotedTwice(t *testing.T) {
	m := openMemQuarantine(t, false)
	two := m.open()
	m.read()
	m.remove()
	_, err := two.quarantine.Read(bg, m.id, make([]byte, 5), 0)
	want(t, err, cluster.ErrCorrupt)
	if rec := m.stored()[m.id]; !rec.Aside {
		t.Errorf("%+v", rec)
	}
}

// TestQuarantineOfEarlierVersion: what the state of the scrub held, before
// damaged blobs had records of their own, is in quarantine.
func TestQuarantineOfEarlierVersion(t *testing.T) {
	m := openMemQuarantine(t, true)
	old, err := json.Marshal(map[string]any{"rate": 5, "blobs": 7, "damaged": []map[string]any{
		{"blob": m.id.String(), "path": "somewhere", "error": "checksum", "found": later(), "id": m.id},
	}})
	want(t, err, nil)
	want(t, m.fs.UpdateSetting(context.Background(), "scrub", func([]byte) ([]byte, error) { return old, nil }), nil)
	m.fs = m.open()
	if s := m.fs.Scrub(bg); s.Blobs != 7 || len(s.Damaged) != 1 || s.Damaged[0].ID != m.id || s.Damaged[0].By != "scrub" ||
		s.Damaged[0].Error != "checksum" || s.Damaged[0].Size == 0 {
		t.Errorf("%+v", s)
	}
	m.remove()
	if !slices.Equal(m.blobs(), []cluster.BlobID{m.id}) {
		t.Errorf("blobs %v", m.blobs())
	}
	_, _, err = m.fs.Release(bg)
	want(t, err, nil)
	if s := m.open().Scrub(bg); s.Aside+len(s.Damaged) != 0 {
		t.Errorf("after the next start: %+v", s)
	}
}
