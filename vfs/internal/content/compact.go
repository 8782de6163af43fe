package content

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// CompactExtents within CompactWindow bytes make a file fragmented: reads
	// of it cost more in places than in bytes.
	CompactExtents = 256
	CompactWindow  = 64 << 20
	// compactSmall: extents that are longer than this part of a window are
	// left as they are, so that a log is rewritten once for each level, and
	// not again and again.
	compactSmall = 16
	// compactQuiet is how long a file that is changed again and again waits for a
	// pause, so that what its writers make durable does not wait for a copy of
	// what they change next; compactPasses, how many passes it waits at most.
	compactQuiet  = 5 * time.Second
	compactPasses = 12
)

// Flushed is called after each flush of ino, with the lengths of the extents that it
// stored. By chance it remembers the file: each small extent
// asks for a look at it with a probability that makes one look
// for many of them, whether the file stays open or is opened for each.
func (s *Store) Flushed(ino record.Ino, lengths iter.Seq[int64]) {
	small := 0
	for n := range lengths {
		if n < CompactWindow/compactSmall {
			small++
		}
	}
	if rand.IntN(CompactExtents/4) >= small {
		return
	}
	select {
	case s.compactQueue <- compactWait{ino: ino}:
	default:
	}
}

// Compact compacts the files that wait, and are not busy.
func (s *Store) Compact(ctx context.Context) error {
	waiting := make(map[record.Ino]int) // a busy file comes often
	for range len(s.compactQueue) {
		w := <-s.compactQueue
		waiting[w.ino] = max(waiting[w.ino], w.passes)
	}
	var first error
	for ino, passes := range waiting {
		busy, err := s.compactBusy(ctx, ino)
		if busy && passes < compactPasses {
			select {
			case s.compactQueue <- compactWait{ino, passes + 1}:
			default:
			}
			continue
		}
		if err == nil {
			err = s.CompactFile(ctx, ino, CompactExtents, CompactWindow)
		}
		if err != nil && !errors.Is(err, fserr.ErrStale) && first == nil {
			first = fmt.Errorf("compact inode %d: %w", ino, err)
		}
	}
	return first
}

// compactBusy tells whether ino changed a moment ago.
func (s *Store) compactBusy(ctx context.Context, ino record.Ino) (busy bool, err error) {
	now := s.Now().UnixNano()
	err = s.Peek(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, ino)
		if err != nil {
			return err
		}
		busy = n.CtimeNS <= now && now-n.CtimeNS < int64(compactQuiet)
		return nil
	})
	return busy, err
}

// CompactFile rewrites runs of small extents, where more than many of them lie
// within window bytes, as one blob each. Bytes, times and version of the file stay.
// ErrStale is for a file that changed meanwhile.
func (s *Store) CompactFile(ctx context.Context, ino record.Ino, many int, window int64) error {
	for off := int64(0); off >= 0; {
		next, err := s.compactAt(ctx, ino, off, many, window)
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}

// compactRun is what one compaction rewrites.
type compactRun struct {
	content record.ContentID
	version uint64
	list    []record.Extent // contiguous
}

func (r *compactRun) from() int64 { return r.list[0].Off }
func (r *compactRun) to() int64   { return r.list[len(r.list)-1].End() }

// compactAt handles the window that begins at off and returns where the
// next does, or -1.
func (s *Store) compactAt(ctx context.Context, ino record.Ino, off int64, many int, window int64) (next int64, err error) {
	var run *compactRun
	var rd *Reader
	err = s.View(ctx, func(r cluster.Reader) error {
		next, run = -1, nil
		n, err := record.GetInode(r, ino)
		if err != nil || n.Content == 0 || n.Has(record.FlagShared) || off >= n.Size {
			return err
		}
		list, more, err := loadWindow(r, n, off, 4*many, window)
		if err != nil || len(list) == 0 {
			return err
		}
		k := 0
		for k < len(list) && list[k].End()-list[0].Off <= window {
			k++
		}
		if k = max(k, 1); k < len(list) {
			next = list[k].Off
		} else if more {
			next = list[k-1].End()
		}
		if k <= many {
			return nil
		}
		small := smallRun(list[:k], window/compactSmall)
		if len(small) <= many/2 {
			return nil
		}
		run = &compactRun{n.Content, n.Version, small}
		rd, err = s.Open(ctx, r, n)
		return err
	})
	if err != nil || run == nil {
		return next, err
	}
	defer rd.Close()
	return next, s.rewrite(ctx, ino, run, rd)
}

// loadWindow returns the extents of n from off on, without their bytes, until one ends
// behind the window, and at most limit; more reports whether there are others.
func loadWindow(r cluster.Reader, n *record.Inode, off int64, limit int, window int64) (list []record.Extent, more bool, err error) {
	more = true
	for from := off; more && len(list) < limit && from-off <= window; from = list[len(list)-1].End() {
		var page []record.Extent
		page, more, err = extents.Load(r, n.Content, from, n.Size, limit-len(list))
		if err != nil || len(page) == 0 {
			return list, false, err
		}
		for i := range page {
			page[i].Data = nil
		}
		list = append(list, page...)
	}
	return list, more, nil
}

// smallRun returns the longest run of contiguous extents of at most limit
// bytes each and cluster.MaxBlobBytes together. References do not count: to
// copy what is shared would take space.
func smallRun(list []record.Extent, limit int64) (best []record.Extent) {
	for i := 0; i < len(list); {
		j, total := i, int64(0)
		for j < len(list) && list[j].Kind != record.ExtentRef && list[j].Len <= limit &&
			(j == i || list[j-1].End() == list[j].Off) && total+list[j].Len <= cluster.MaxBlobBytes {
			total += list[j].Len
			j++
		}
		if j-i > len(best) {
			best = list[i:j]
		}
		i = max(j, i+1)
	}
	return best
}

// rewrite stores the bytes of run as one blob and replaces its extents if
// they are still the same.
func (s *Store) rewrite(ctx context.Context, ino record.Ino, run *compactRun, rd *Reader) error {
	w, err := s.NewWriter(ctx, run.content, run.to()-run.from())
	if err != nil {
		return err
	}
	w.InlineLimit = 0
	defer w.Abort(ctx)
	buf := make([]byte, min(copyBuffer, run.to()-run.from()))
	for off := run.from(); off < run.to(); {
		if err := s.compactStale(ctx, ino, run); err != nil {
			return err
		}
		k, err := rd.Read(ctx, buf[:min(int64(len(buf)), run.to()-off)], off)
		if k == 0 {
			return err
		}
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		off += int64(k)
	}
	c, err := w.Finish(ctx)
	if err != nil {
		return err
	}
	s.Pins.Pin(run.content)
	defer s.Pins.Unpin(run.content)
	stored := false
	err = s.replaceRun(ctx, ino, run, c.Extents, &stored)
	unknown := errors.Is(err, fserr.ErrUnavailable)
	if !stored && !unknown {
		s.deleteBlobs(ctx, c.ID, c.Extents)
	}
	c.Published(!unknown)
	return err
}

// compactStale returns ErrStale if ino changed since run was read: nothing would be
// replaced, and there is no use in copying the rest.
func (s *Store) compactStale(ctx context.Context, ino record.Ino, run *compactRun) error {
	return s.Peek(ctx, func(r cluster.Reader) error {
		was, err := replaced(r, ino, run.content, run.version)
		if err == nil && was {
			err = fserr.ErrStale
		}
		return err
	})
}

// replaceRun puts the new blob's extents in the place of run, in as many
// transactions as it takes. stored reports whether one of them may have named it.
func (s *Store) replaceRun(ctx context.Context, ino record.Ino, run *compactRun, list []record.Extent, stored *bool) error {
	e := list[0]
	it := Item{Off: e.Off + run.from(), Len: e.Len, Blob: Blob{e.Seq, e.BlobSize, e.BlobCRC}}
	b := Bounds{Extents: s.cutLimit(), Keep: map[uint64]bool{e.Seq: true}}
	version := run.version
	for off := it.Off; off < it.End(); {
		var done int64
		var now uint64
		err := s.Update(ctx, func(t cluster.Txn, ch *Change) error {
			n, err := record.GetInode(t, ino)
			if err != nil {
				return err
			}
			if n.Content != run.content || n.Version != version || n.Has(record.FlagShared) {
				return fserr.ErrStale
			}
			ch.sameBytes = true
			if done, _, err = ch.StoreItem(t, n, &it, off, b); err != nil {
				return err
			}
			now = n.Version
			ch.op.Stored(ino)
			return record.PutInode(t, n)
		})
		if err != nil {
			return err
		}
		*stored, off, version = true, done, now
	}
	return nil
}
