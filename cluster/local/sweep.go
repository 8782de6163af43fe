package local

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

// sweepPause is the pause between two folders of blob files, so that the
// sweep after a start is not felt.
const sweepPause = 20 * time.Millisecond

// sweeper removes, once after every start and in the background, the blob
// files that a crash left without an index entry.
type sweeper struct {
	blobs *Blobs
	log   *slog.Logger
	quit  chan struct{}
	done  chan struct{}
}

func newSweeper(b *Blobs, log *slog.Logger) *sweeper {
	s := &sweeper{blobs: b, log: log, quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *sweeper) stop() {
	close(s.quit)
	<-s.done
}

func (s *sweeper) run() {
	defer close(s.done)
	removed := 0
	for i := range record.BlobFanOut {
		select {
		case <-s.quit:
			return
		case <-time.After(sweepPause):
		}
		n, err := s.folder(record.BlobFolder(s.blobs.dir, i))
		removed += n
		if err != nil {
			s.log.Warn("sweep of blob files", "err", err)
		}
	}
	if removed > 0 {
		s.log.Info("removed blob files that a crash left", "files", removed)
	}
}

func (s *sweeper) folder(dir string) (removed int, err error) {
	names, err := s.blobs.disk.List(dir)
	if err != nil {
		return 0, err
	}
	var orphans []string
	for _, name := range names {
		raw, err := hex.DecodeString(name)
		if err != nil {
			continue // not ours
		}
		id, err := cluster.ParseBlobID(raw)
		if err == nil && s.orphan(id) {
			orphans = append(orphans, name)
		}
	}
	if len(orphans) == 0 {
		return 0, nil
	}
	// An entry may be gone since a moment ago, and be back after a power cut: the reaper
	// does not know all of these, nor those for which it waits.
	if err := s.blobs.index.sync(); err != nil {
		return 0, err
	}
	for _, name := range orphans {
		if err := s.blobs.disk.Remove(filepath.Join(dir, name)); err == nil {
			removed++
		}
	}
	return removed, nil
}

// orphan reports whether nobody knows the file of id, or will. A writer is
// active until its blob is in the index, so the order of the questions counts.
// Files that the reaper is about to remove are left to it.
func (s *sweeper) orphan(id cluster.BlobID) bool {
	if s.blobs.isActive(id) {
		return false
	}
	p, err := s.blobs.index.get(id)
	if err == nil {
		return p.Segment != 0
	}
	return errors.Is(err, cluster.ErrNotFound) && !s.blobs.reaper.waiting(s.blobs.filePath(id))
}
