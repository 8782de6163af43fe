package ledger

import (
	"slices"
	"sync"
)

// Lock is one lock.
type Lock struct {
	Owner      uint64
	Start, End uint64
	PID        uint32
	Exclusive  bool
}

// lockSlot is one lock of a file.
type lockSlot struct {
	_          uint32 // state
	pid        uint32
	ino        uint64
	owner      uint64
	start, end uint64
	space      uint8
	exclusive  bool
	_          [6]byte
}

func (s *lockSlot) lock() Lock { return Lock{s.owner, s.start, s.end, s.pid, s.exclusive} }

// lockFile is the locks of a file in one space.
type lockFile struct {
	ino   uint64
	space uint8
}

// Locks are the locks of the mount's programs.
type Locks struct {
	t     *table[lockSlot]
	mu    sync.Mutex
	files map[lockFile][]uint32 // slots
}

func newLocks(t *table[lockSlot]) *Locks {
	l := &Locks{t: t, files: make(map[lockFile][]uint32)}
	t.each(func(i uint32, s *lockSlot) {
		f := lockFile{s.ino, s.space}
		l.files[f] = append(l.files[f], i)
	})
	return l
}

// Set records that a file has these locks in a space, and no others. What does
// not fit is left out: ErrFull.
func (l *Locks) Set(ino uint64, space uint8, locks []Lock) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := lockFile{ino, space}
	old := l.files[f]
	kept := make([]uint32, 0, len(locks))
	for _, lock := range locks {
		if k := slices.IndexFunc(old, func(i uint32) bool { return l.t.at(i).lock() == lock }); k >= 0 {
			kept = append(kept, old[k])
			old = slices.Delete(old, k, k+1)
			continue
		}
		i, e := l.t.take()
		if e != nil {
			err = e
			continue
		}
		s := l.t.at(i)
		s.ino, s.space, s.owner, s.start, s.end, s.pid, s.exclusive = ino, space, lock.Owner, lock.Start, lock.End, lock.PID, lock.Exclusive
		l.t.set(i)
		kept = append(kept, i)
	}
	for _, i := range old {
		l.t.drop(i)
	}
	if l.files[f] = kept; len(kept) == 0 {
		delete(l.files, f)
	}
	return err
}

// Each calls fn for all, in no order.
func (l *Locks) Each(fn func(ino uint64, space uint8, lock Lock)) {
	l.t.each(func(_ uint32, s *lockSlot) { fn(s.ino, s.space, s.lock()) })
}

// ownerSlot records that owner sets locks through an open file.
type ownerSlot struct {
	_     uint32 // state
	space uint32
	fh    uint64
	owner uint64
}

type ownerKey struct {
	fh, owner uint64
	space     uint8
}

// Owners records which owners set locks through which open files.
type Owners struct {
	t  *table[ownerSlot]
	mu sync.Mutex
	at map[ownerKey]uint32
}

func newOwners(t *table[ownerSlot]) *Owners {
	o := &Owners{t: t, at: make(map[ownerKey]uint32)}
	t.each(func(i uint32, s *ownerSlot) { o.at[ownerKey{s.fh, s.owner, uint8(s.space)}] = i })
	return o
}

// Add records an owner.
func (o *Owners) Add(fh uint64, space uint8, owner uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := ownerKey{fh, owner, space}
	if _, ok := o.at[k]; ok {
		return nil
	}
	i, err := o.t.take()
	if err != nil {
		return err
	}
	s := o.t.at(i)
	s.fh, s.space, s.owner = fh, uint32(space), owner
	o.t.set(i)
	o.at[k] = i
	return nil
}

// Remove ends that.
func (o *Owners) Remove(fh uint64, space uint8, owner uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := ownerKey{fh, owner, space}
	if i, ok := o.at[k]; ok {
		delete(o.at, k)
		o.t.drop(i)
	}
}

// Each calls fn for all, in no order.
func (o *Owners) Each(fn func(fh uint64, space uint8, owner uint64)) {
	o.t.each(func(_ uint32, s *ownerSlot) { fn(s.fh, uint8(s.space), s.owner) })
}
