package fusemount

import (
	"context"
	"sync"

	"ogw/vfs"
	"ogw/vfs/lock"
)

// lockers know through which handle each owner locked last. The kernel names an open file by
// an address, which it gives to the next one as soon as it has sent the RELEASE: that must
// not end what the next one locked, however long the release takes or waits.
type lockers struct {
	mu     sync.Mutex
	last   map[locker]lockedBy
	files  map[vfs.Ino]int          // of how many owners of each last has something
	ending map[locker]chan struct{} // closed when the owner's release is done
	ever   map[vfs.Ino]struct{}     // files that somebody locked, at most maxKnownLocked
}

// maxKnownLocked bounds the files of which it is known that somebody locked them once. A close of
// another one may end a lock later (rawFS.untold).
const maxKnownLocked = 8192

// locker is an owner of locks of a file.
type locker struct {
	ino vfs.Ino
	lockOwner
}

type lockedBy struct {
	h  *fileHandle
	fh uint64
}

// use notes that an owner is about to lock through a handle, after a release of its locks
// that is under way. Through which one it did before is forgotten: before is that one, or fh.
func (l *lockers) use(ctx context.Context, h *fileHandle, fh uint64, o lockOwner) (before uint64, err error) {
	k := locker{h.ino, o}
	for {
		l.mu.Lock()
		ending := l.ending[k]
		if ending == nil {
			break
		}
		l.mu.Unlock()
		select {
		case <-ending:
		case <-ctx.Done():
			return fh, lock.ErrInterrupted
		}
	}
	defer l.mu.Unlock()
	before = fh
	if l.last == nil {
		l.last, l.files, l.ever = make(map[locker]lockedBy), make(map[vfs.Ino]int), make(map[vfs.Ino]struct{})
	}
	if was, ok := l.last[k]; !ok {
		l.files[h.ino]++
	} else if was.h != h {
		was.h.owners.take(o)
		before = was.fh
	}
	if len(l.ever) >= maxKnownLocked {
		clear(l.ever)
	}
	l.ever[h.ino] = struct{}{}
	l.last[k] = lockedBy{h, fh}
	h.owners.add(o)
	return before, nil
}

// forget notes that an owner has nothing by a handle any more.
func (l *lockers) forget(h *fileHandle, o lockOwner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.owners.take(o)
	l.drop(h, locker{h.ino, o})
}

func (l *lockers) drop(h *fileHandle, k locker) {
	if l.last[k].h != h {
		return
	}
	delete(l.last, k)
	if l.files[k.ino]--; l.files[k.ino] == 0 {
		delete(l.files, k.ino)
	}
}

// locked reports whether somebody locked the file through a handle that is open, and may
// have it locked.
func (l *lockers) locked(ino vfs.Ino) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[ino] > 0
}

// locks reports whether an owner locked the file through a handle that is open, and may have
// it locked.
func (l *lockers) locks(k locker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, locks := l.last[k]
	return locks
}

// known reports whether somebody locked the file through this mount, for all that is known.
func (l *lockers) known(ino vfs.Ino) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.ever[ino]
	return known || l.files[ino] > 0
}

// end returns the owners that locked through a handle last. They lock again when done was
// called.
func (l *lockers) end(h *fileHandle) (owners []lockOwner, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := make(chan struct{})
	owners = h.owners.takeAll()
	for _, o := range owners {
		k := locker{h.ino, o}
		l.drop(h, k)
		if l.ending == nil {
			l.ending = make(map[locker]chan struct{})
		}
		l.ending[k] = ended
	}
	return owners, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(ended)
		for _, o := range owners {
			delete(l.ending, locker{h.ino, o})
		}
	}
}
