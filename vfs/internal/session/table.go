package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"ogw/vfs/internal/record"
)

// Inodes is the store as a Table sees it.
type Inodes interface {
	// Look reads whether the store has an inode, and whether it is an orphan.
	Look(ctx context.Context, ino record.Ino) (stored, orphan bool, err error)
	// Unused is notified of an inode that may have no links, and whose last use has
	// ended. No lock is held.
	Unused(ino record.Ino)
}

// File is what a Table keeps for an open inode.
type File interface {
	// Written reports whether anything was ever written to it.
	Written() bool
	// Leave comes when the last user goes, before anybody can have another File of the
	// inode. The lock of the table is held.
	Leave()
}

// Table knows the inodes that this process has open, one File each,
// and those that Holders keep, and orders opening and holding against the
// removal of the last link:
//
//   - Acquire and Holder.Hold wait while the inode is marked as unlinking,
//     then count;
//   - Removals.Begin, called inside the transaction, either marks the inode, or
//     reports that it is used, and then the transaction keeps the inode as an
//     orphan (key 'o') that the last close or release removes;
//   - who held an inode after it was looked up learns from removed whether it
//     was removed in between: that is set before the mark goes;
//   - an inode that was written to leaves the table after its last flush has
//     committed. Who reads a snapshot and then finds nothing here would miss
//     that flush, if the snapshot is older: see LeftSince.
type Table struct {
	store  Inodes
	shards [tableShards]tableShard

	// open counts the files of each slot that are in the table: who only
	// looks, and mostly finds none, needs no lock.
	open   [leftSlots]atomic.Int32
	leaves atomic.Uint64            // written files that left
	left   [leftSlots]atomic.Uint64 // leaves, when the last of a slot left; changed under the shard's mu

	moves atomic.Int64 // marks in all moving

	removals atomic.Uint64            // inodes marked by transactions that are over
	removed  [leftSlots]atomic.Uint64 // removals, when the last of a slot was; changed under the shard's mu

	asked atomic.Uint64 // how often others were, or are about to be, told what is in use

	holding sync.Mutex                // guards changes of holders
	holders atomic.Pointer[[]*Holder] // replaced, never changed
}

const (
	tableShards = 64
	// leftSlots is how many inodes are distinguished among those that left; two
	// that share a slot are read once more now and then. A multiple of
	// tableShards: the inodes of a slot share a shard.
	leftSlots = 4096
)

type tableShard struct {
	mu        sync.Mutex
	files     map[record.Ino]use
	unlinking inodeMarks
	moving    inodeMarks // see Move
	// orphans are inodes in use that may have lost their last link. Who ends
	// the last use takes them out.
	orphans map[record.Ino]struct{}
}

// use is an open file and how often it is open.
type use struct {
	file  File
	users int
}

// inodeMarks are inodes that some wait for.
type inodeMarks map[record.Ino]*inodeMark

type inodeMark struct {
	n    int           // operations that marked it
	done chan struct{} // closed when the last of them ended
}

func (m inodeMarks) begin(ino record.Ino) {
	if m[ino] == nil {
		m[ino] = &inodeMark{done: make(chan struct{})}
	}
	m[ino].n++
}

func (m inodeMarks) end(ino record.Ino) {
	x := m[ino]
	if x.n--; x.n == 0 {
		delete(m, ino)
		close(x.done)
	}
}

func (t *Table) init(store Inodes) {
	t.store = store
	for i := range t.shards {
		t.shards[i].files = make(map[record.Ino]use)
		t.shards[i].unlinking = make(inodeMarks)
		t.shards[i].moving = make(inodeMarks)
		t.shards[i].orphans = make(map[record.Ino]struct{})
	}
}

func (t *Table) shard(ino record.Ino) *tableShard { return &t.shards[uint64(ino)%tableShards] }

// Acquire counts one more user of ino and returns its File, made by mk
// if there is none. The caller must validate that the inode exists after
// this, and Release.
func (t *Table) Acquire(ctx context.Context, ino record.Ino, mk func() File) (File, error) {
	s, err := t.lockUnmarked(ctx, ino)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	u := s.files[ino]
	if u.file == nil {
		u.file = mk()
		t.open[ino%leftSlots].Add(1)
	}
	u.users++
	s.files[ino] = u
	return u.file, nil
}

// lockUnmarked returns ino's shard, locked, when no transaction has marked ino.
func (t *Table) lockUnmarked(ctx context.Context, ino record.Ino) (*tableShard, error) {
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

// Get returns the File of ino, or nil, without counting.
func (t *Table) Get(ino record.Ino) File {
	if t.open[ino%leftSlots].Load() == 0 {
		return nil
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[ino].file
}

// Release counts one user of ino less and reports whether that was the last; its
// File is then out of the table. orphan reports whether nothing else uses the
// inode, and that it may have no links.
func (t *Table) Release(ino record.Ino) (last, orphan bool) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.files[ino]
	if u.users--; u.users > 0 {
		s.files[ino] = u
		return false, false
	}
	u.file.Leave()
	if u.file.Written() {
		t.left[ino%leftSlots].Store(t.leaves.Add(1))
	}
	delete(s.files, ino)
	t.open[ino%leftSlots].Add(-1)
	return true, t.takeOrphan(s, ino)
}

// takeOrphan reports whether ino is among the orphans and not in use, and takes
// it out then. Under s.mu.
func (t *Table) takeOrphan(s *tableShard, ino record.Ino) bool {
	if _, ok := s.orphans[ino]; !ok || t.used(s, ino) {
		return false
	}
	delete(s.orphans, ino)
	return true
}

// used reports whether ino is open or held. Under s.mu.
func (t *Table) used(s *tableShard, ino record.Ino) bool {
	return s.files[ino].file != nil || t.held(ino)
}

// MarkOrphan notes that ino, if it is in use, may have no links, and reports
// whether it is.
func (t *Table) MarkOrphan(ino record.Ino) (used bool) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if used = t.used(s, ino); used {
		s.orphans[ino] = struct{}{}
	}
	return used
}

// Used reports whether ino is open or held.
func (t *Table) Used(ino record.Ino) bool {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.used(s, ino)
}

// Held reports whether ino is held.
func (t *Table) Held(ino record.Ino) bool {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.held(ino)
}

// held is Held under the shard's mu.
func (t *Table) held(ino record.Ino) bool {
	for _, h := range t.allHolders() {
		if h.shards[uint64(ino)%tableShards].has(ino) {
			return true
		}
	}
	return false
}

// InUse returns the inodes that are open or held throughout the call, and perhaps
// others; ok reports whether there are no more than most. Who counts one after it was
// asked learns that (HoldMark).
func (t *Table) InUse(most int) (list []record.Ino, ok bool) {
	t.asked.Add(1)
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for ino := range s.files {
			list = append(list, ino)
		}
		for _, h := range t.allHolders() {
			for ino := range h.shards[i].counts {
				if s.files[ino].file == nil {
					list = append(list, ino)
				}
			}
			if len(list) > most {
				break
			}
		}
		s.mu.Unlock()
		if len(list) > most {
			return nil, false
		}
	}
	return list, true
}

// usedOf returns those of a list that are open or held, as InUse does.
func (t *Table) usedOf(list []record.Ino) []record.Ino {
	t.asked.Add(1)
	return slices.DeleteFunc(list, func(ino record.Ino) bool { return !t.Used(ino) })
}

func (t *Table) allHolders() []*Holder {
	if p := t.holders.Load(); p != nil {
		return *p
	}
	return nil
}

// tells reports whether a Holder is to be notified of what was removed.
func (t *Table) tells() bool {
	return slices.ContainsFunc(t.allHolders(), func(h *Holder) bool { return h.forget.Load() != nil })
}

func (t *Table) addHolder(h *Holder) {
	t.holding.Lock()
	defer t.holding.Unlock()
	list := append(slices.Clone(t.allHolders()), h)
	t.holders.Store(&list)
}

func (t *Table) removeHolder(h *Holder) {
	t.holding.Lock()
	defer t.holding.Unlock()
	list := slices.DeleteFunc(slices.Clone(t.allHolders()), func(x *Holder) bool { return x == h })
	t.holders.Store(&list)
}

// Mark is taken before a snapshot, for LeftSince.
func (t *Table) Mark() uint64 { return t.leaves.Load() }

// LeftSince reports whether ino was flushed and left the table after mark, so
// that neither a snapshot nor the table may show what was written to it. It
// is asked after the table.
func (t *Table) LeftSince(mark uint64, ino record.Ino) bool {
	return t.left[ino%leftSlots].Load() > mark
}

// Each calls fn for every open file.
func (t *Table) Each(fn func(File)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		list := make([]File, 0, len(s.files))
		for _, u := range s.files {
			list = append(list, u.file)
		}
		s.mu.Unlock()
		for _, f := range list {
			fn(f)
		}
	}
}
