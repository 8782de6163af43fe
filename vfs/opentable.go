package vfs

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// openTable knows the inodes that this process has open, one openFile each,
// and those that Holders keep, and orders opening and holding against the
// removal of the last link:
//
//   - acquire and Holder.Hold wait while the inode is marked as unlinking,
//     then count;
//   - removals.begin, called inside the transaction, either marks the inode, or
//     reports that it is used, and then the transaction keeps the inode as an
//     orphan (key 'o') that the last close or release removes;
//   - who held an inode after it was looked up learns from removed whether it
//     was removed in between: that is set before the mark goes;
//   - an inode that was written to leaves the table after its last flush has
//     committed. Who reads a snapshot and then finds nothing here would miss
//     that flush, if the snapshot is older: see leftSince.
type openTable struct {
	shards [openShards]openShard

	// open counts the files of each slot that are in the table: who only
	// looks, and mostly finds none, needs no lock.
	open   [leftSlots]atomic.Int32
	leaves atomic.Uint64            // written files that left
	left   [leftSlots]atomic.Uint64 // leaves, when the last of a slot left; changed under the shard's mu

	removals atomic.Uint64            // inodes marked by transactions that are over
	removed  [leftSlots]atomic.Uint64 // removals, when the last of a slot was; changed under the shard's mu

	holding sync.Mutex                // guards changes of holders
	holders atomic.Pointer[[]*Holder] // replaced, never changed
}

const (
	openShards = 64
	// leftSlots is how many inodes are told apart among those that left; two
	// that share a slot are read once more now and then. A multiple of
	// openShards: the inodes of a slot share a shard.
	leftSlots = 4096
)

type openShard struct {
	mu        sync.Mutex
	files     map[Ino]*openFile
	unlinking map[Ino]*unlinkMark
	// orphans are inodes in use that may have lost their last link. Who ends
	// the last use takes them out.
	orphans map[Ino]struct{}
}

type unlinkMark struct {
	n    int           // transactions that marked it
	done chan struct{} // closed when the last of them ended
}

func (t *openTable) init() {
	for i := range t.shards {
		t.shards[i].files = make(map[Ino]*openFile)
		t.shards[i].unlinking = make(map[Ino]*unlinkMark)
		t.shards[i].orphans = make(map[Ino]struct{})
	}
}

func (t *openTable) shard(ino Ino) *openShard { return &t.shards[uint64(ino)%openShards] }

// acquire counts one more user of ino and returns its openFile, made by mk
// if there is none. The caller must validate that the inode exists after
// this, and release.
func (t *openTable) acquire(ctx context.Context, ino Ino, mk func() *openFile) (*openFile, error) {
	s, err := t.lockSettled(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	f := s.files[ino]
	if f == nil {
		f = mk()
		s.files[ino] = f
		t.open[ino%leftSlots].Add(1)
	}
	f.users++
	return f, nil
}

// lockSettled returns ino's shard, locked, when no transaction has marked ino.
func (t *openTable) lockSettled(ctx context.Context, ino Ino) (*openShard, error) {
	s := t.shard(ino)
	for {
		s.mu.Lock()
		m := s.unlinking[ino]
		if m == nil {
			return s, nil
		}
		s.mu.Unlock()
		select {
		case <-m.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// get returns the openFile of ino, or nil, without counting.
func (t *openTable) get(ino Ino) *openFile {
	if t.open[ino%leftSlots].Load() == 0 {
		return nil
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[ino]
}

// release counts one user less and tells whether that was the last; the
// openFile is then out of the table. orphan tells that nothing else uses the
// inode, and that it may have no links.
func (t *openTable) release(f *openFile) (last, orphan bool) {
	s := t.shard(f.ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users > 0 {
		return false, false
	}
	if f.written.Load() {
		t.left[f.ino%leftSlots].Store(t.leaves.Add(1))
	}
	delete(s.files, f.ino)
	t.open[f.ino%leftSlots].Add(-1)
	return true, t.takeOrphan(s, f.ino)
}

// takeOrphan tells whether ino is among the orphans and not in use, and takes
// it out then. Under s.mu.
func (t *openTable) takeOrphan(s *openShard, ino Ino) bool {
	if _, ok := s.orphans[ino]; !ok || t.used(s, ino) {
		return false
	}
	delete(s.orphans, ino)
	return true
}

// used tells whether ino is open or held. Under s.mu.
func (t *openTable) used(s *openShard, ino Ino) bool {
	if s.files[ino] != nil {
		return true
	}
	for _, h := range t.allHolders() {
		if h.shards[uint64(ino)%openShards].has(ino) {
			return true
		}
	}
	return false
}

// markOrphan tells that ino, if it is in use, may have no links.
func (t *openTable) markOrphan(ino Ino) (used bool) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if used = t.used(s, ino); used {
		s.orphans[ino] = struct{}{}
	}
	return used
}

func (t *openTable) allHolders() []*Holder {
	if p := t.holders.Load(); p != nil {
		return *p
	}
	return nil
}

func (t *openTable) addHolder(h *Holder) {
	t.holding.Lock()
	defer t.holding.Unlock()
	list := append(slices.Clone(t.allHolders()), h)
	t.holders.Store(&list)
}

func (t *openTable) removeHolder(h *Holder) {
	t.holding.Lock()
	defer t.holding.Unlock()
	list := slices.DeleteFunc(slices.Clone(t.allHolders()), func(x *Holder) bool { return x == h })
	t.holders.Store(&list)
}

// mark is taken before a snapshot, for leftSince.
func (t *openTable) mark() uint64 { return t.leaves.Load() }

// leftSince tells whether ino was flushed and left the table after mark, so
// that neither a snapshot nor the table may show what was written to it. It
// is asked after the table.
func (t *openTable) leftSince(mark uint64, ino Ino) bool { return t.left[ino%leftSlots].Load() > mark }

// each calls fn for every open file.
func (t *openTable) each(fn func(*openFile)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		list := make([]*openFile, 0, len(s.files))
		for _, f := range s.files {
			list = append(list, f)
		}
		s.mu.Unlock()
		for _, f := range list {
			fn(f)
		}
	}
}

// removals are the inodes whose last link a transaction removes: who opens or
// holds one of them waits for the outcome. It is an effect.
type removals struct {
	t    *openTable
	inos []Ino
}

// begin reports whether ino is open or held: then it must stay, as an orphan. If
// not, who opens or holds it waits until the transaction is over.
func (r *removals) begin(ino Ino) (used bool) {
	s := r.t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.t.used(s, ino) {
		s.orphans[ino] = struct{}{}
		return true
	}
	m := s.unlinking[ino]
	if m == nil {
		m = &unlinkMark{done: make(chan struct{})}
		s.unlinking[ino] = m
	}
	m.n++
	r.inos = append(r.inos, ino)
	return false
}

// Again implements effect.
func (r *removals) Again() { r.end() }

// Failed implements effect.
func (r *removals) Failed() { r.end() }

// Committed implements effect.
func (r *removals) Committed(context.Context, bool) { r.end() }

func (r *removals) end() {
	t := r.t
	for _, ino := range r.inos {
		s := t.shard(ino)
		s.mu.Lock()
		t.removed[ino%leftSlots].Store(t.removals.Add(1))
		if m := s.unlinking[ino]; m != nil {
			if m.n--; m.n == 0 {
				delete(s.unlinking, ino)
				close(m.done)
			}
		}
		s.mu.Unlock()
	}
}
