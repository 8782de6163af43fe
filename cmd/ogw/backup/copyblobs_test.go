package backup

import (
	"context"
	"slices"
	"testing"

	"ogw/cluster"
	"ogw/vfs"
)

// entryList is a catalog in memory.
type entryList []*entry

func (l *entryList) head(context.Context) (*entry, error) {
	if len(*l) == 0 {
		return nil, nil
	}
	return (*l)[0], nil
}

func (l *entryList) pop() { *l = (*l)[1:] }

// jobsOf plans a backup whose last one had the blobs 0 to 99 of a content, and that has
// those named.
func jobsOf(t *testing.T, full bool, names ...uint64) (jobs []*job) {
	t.Helper()
	var old entryList
	for i := range uint64(100) {
		old = append(old, &entry{key: blobKey(cluster.BlobID{Content: 7, Seq: i}), kind: entryPiece, piece: piece{sum: blobSum(i), len: 10}})
	}
	b := &run{old: &old, full: full, names: nameSorter{limit: sortRun}, jobKeys: 8, uploads: newUploads(t.Context(), packsInFlight, nil)}
	defer b.uploads.end()
	for _, n := range names {
		if err := b.names.add(vfs.BackupBlob{ID: cluster.BlobID{Content: 7, Seq: n}, Size: 10, CRC: n}); err != nil {
			t.Fatal(err)
		}
	}
	planned := make(chan *job, 200)
	if err := b.plan(t.Context(), planned); err != nil {
		t.Fatal(err)
	}
	close(planned)
	for j := range planned {
		jobs = append(jobs, j)
	}
	return jobs
}

// However many blobs are gone between two that are there, a job holds a bounded number.
func TestJobsAreBounded(t *testing.T) {
	for _, names := range [][]uint64{{99}, {0, 3, 40, 41, 99}, {6, 50, 97, 98, 99}} {
		var keys [][]byte
		deleted, blobs := 0, int64(0)
		for _, j := range jobsOf(t, false, names...) {
			if len(j.keys) > 8 || len(j.keys) != len(j.known) || len(j.keys) != len(j.writes) {
				t.Errorf("%v: a job of %d keys", names, len(j.keys))
			}
			keys = append(keys, j.keys...)
			for i, e := range j.known {
				if e.kind == entryDeleted {
					deleted++
				}
				if j.writes[i] != (e.kind == entryDeleted) {
					t.Errorf("%v: written %v: kind %d", names, j.writes[i], e.kind)
				}
			}
			blobs += j.count
			if (j.first == cluster.BlobID{}) != (j.count == 0) {
				t.Errorf("%v: %d blobs, the first is %v", names, j.count, j.first)
			}
		}
		if len(keys) != 100 || deleted != 100-len(names) || blobs != int64(len(names)) || !slices.IsSortedFunc(keys, slices.Compare) {
			t.Errorf("%v: %d keys, %d deleted, %d blobs", names, len(keys), deleted, blobs)
		}
	}
}

// A new full list does not name what is gone.
func TestJobsOfAFullList(t *testing.T) {
	keys := 0
	for _, j := range jobsOf(t, true, 3, 99) {
		keys += len(j.keys)
	}
	if keys != 2 {
		t.Errorf("%d keys are held for 2 blobs", keys)
	}
}

// What was released stays released where a job has nothing but what is gone.
func TestReleaseBehindWhatIsGone(t *testing.T) {
	d := testDir(t)
	out, err := newLayerWriter(d, newUploads(t.Context(), 1, nil), "0000000000000001", func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	b := &run{out: out, held: &held{}}
	first := cluster.BlobID{Content: 7, Seq: 1}
	gone := blobKey(cluster.BlobID{Content: 7, Seq: 2})
	b.held.release(first)
	if err := b.writeJob(&job{keys: [][]byte{gone}, known: []*entry{{key: gone, kind: entryDeleted}}, writes: []bool{true}}); err != nil {
		t.Fatal(err)
	}
	if b.held.needed != first {
		t.Errorf("needed from %v on", b.held.needed)
	}
}
