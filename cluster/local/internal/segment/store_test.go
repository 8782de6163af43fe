package segment

import (
	"log/slog"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// cacheDisk writes through a page cache, as where O_DIRECT is not taken: that a page could not
// be written to the medium is told once to each open file, by whichever sync of it asks first.
type cacheDisk struct {
	fileio.Disk
	lost chan struct{} // closed when the page that begins with badByte was not written
	ask  chan struct{} // closed to have the writer of that page ask

	mu     sync.Mutex
	errors int // of the one segment that has any
}

const badByte = 0xBA

type cacheFile struct {
	fileio.File
	disk *cacheDisk
	told int // of disk.errors
}

func (d *cacheDisk) OpenSegment(path string) (fileio.File, error) {
	f, err := d.Disk.OpenSegment(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	return &cacheFile{f, d, d.errors}, err
}

func (f *cacheFile) WritePages(off int64, pages ...[]byte) error {
	if err := f.File.WritePages(off, pages...); err != nil {
		return err
	}
	if pages[0][0] == badByte {
		f.disk.mu.Lock()
		f.disk.errors++
		f.disk.mu.Unlock()
		close(f.disk.lost)
		<-f.disk.ask
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.told == f.disk.errors {
		return nil
	}
	f.told = f.disk.errors
	return unix.EIO
}

// TestLostPage: a record of which a page was lost is not acknowledged, though another write to the
// segment asks first what became of the pages.
func TestLostPage(t *testing.T) {
	dir := t.TempDir()
	d := &cacheDisk{Disk: fileio.NewOS(dir), lost: make(chan struct{}), ask: make(chan struct{})}
	s, err := Open(Config{Disk: d, Dir: dir, Bytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer s.Stop()
	add := func(seq uint64, first byte) error {
		r := record.Record{ID: cluster.BlobID{Content: 1, Seq: seq}, Size: 1}
		pages := fileio.NewPages(int(record.Bytes(r.Size)))
		pages[0] = first
		r.Blocks = record.BlockSums(nil, pages[:r.Size])
		err := s.Append(&r, pages)
		if err == nil {
			s.Indexed(r.Segment)
		}
		return err
	}
	lost := make(chan error, 1)
	go func() { lost <- add(1, badByte) }()
	<-d.lost
	other := add(2, 0)
	close(d.ask)
	if err := <-lost; err == nil {
		t.Errorf("a record that was lost is acknowledged; the other write was told: %v", other)
	}
	if err := add(3, 0); err != nil {
		t.Errorf("the next segment: %v", err)
	}
}
