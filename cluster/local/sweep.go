package local

import (
	"encoding/hex"
	"log/slog"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

// sweepPause is the pause between two folders of blob files, so that the
// sweep after a start is not felt.
const sweepPause = 20 * time.Millisecond

// sweeper finds, once after every start and in the background, the blob files
// that a crash left without an index entry, and gives them to the reaper.
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
	orphans := 0
	for i := range record.BlobFanOut {
		select {
		case <-s.quit:
			return
		case <-time.After(sweepPause):
		}
		n, err := s.folder(record.BlobFolder(s.blobs.dir, i))
		orphans += n
		if err != nil {
			s.log.Warn("sweep of blob files", "err", err)
		}
	}
	if orphans > 0 {
		s.log.Info("blob files that a crash left are removed", "files", orphans)
	}
}

// folder has the reaper remove what nobody knows of dir: it waits until that is durable, also
// for what was deleted a moment ago and it does not know.
func (s *sweeper) folder(dir string) (orphans int, err error) {
	names, err := s.blobs.disk.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		raw, err := hex.DecodeString(name)
		if err != nil {
			continue // not ours
		}
		id, err := cluster.ParseBlobID(raw)
		if err == nil && !s.blobs.indexed(id) && s.blobs.reapOrphan(id) {
			orphans++
		}
	}
	return orphans, nil
}
