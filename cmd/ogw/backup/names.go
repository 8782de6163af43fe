package backup

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"ogw/cluster"
	"ogw/vfs"
)

const (
	// sortRun is how many names of blobs are sorted in memory.
	sortRun = 1 << 20
	// nameBytes is the length of a name on disk.
	nameBytes = cluster.BlobIDBytes + 8 + 8
)

// nameSorter sorts the names of blobs, in a file that has no name where they
// are many.
type nameSorter struct {
	run   []vfs.BackupBlob
	limit int
	file  *os.File
	size  int64
	runs  []int64 // where each begins
	count int64   // of all, those twice counted twice
	bytes int64
}

func (s *nameSorter) add(b vfs.BackupBlob) error {
	if k := len(s.run); k > 0 && s.run[k-1] == b {
		return nil // extents of one blob stand together
	}
	s.run = append(s.run, b)
	s.count++
	s.bytes += b.Size
	if len(s.run) < s.limit {
		return nil
	}
	return s.spill()
}

func byID(a, b vfs.BackupBlob) int {
	return cmp.Or(cmp.Compare(a.ID.Content, b.ID.Content), cmp.Compare(a.ID.Seq, b.ID.Seq))
}

func (s *nameSorter) spill() (err error) {
	slices.SortFunc(s.run, byID)
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "ogw-backup-*"); err != nil {
			return err
		}
		if err := os.Remove(s.file.Name()); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(s.file, 1<<20)
	var b []byte
	for i := range s.run {
		x := &s.run[i]
		b = x.ID.Append(b[:0])
		b = binary.BigEndian.AppendUint64(b, uint64(x.Size))
		b = binary.BigEndian.AppendUint64(b, x.CRC)
		_, err = w.Write(b)
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	s.runs = append(s.runs, s.size)
	s.size += int64(len(s.run)) * nameBytes
	s.run = s.run[:0]
	return nil
}

// each calls fn for every name once, in order.
func (s *nameSorter) each(fn func(vfs.BackupBlob) error) error {
	slices.SortFunc(s.run, byID)
	sources := []*nameRun{{memory: s.run}}
	for i, from := range s.runs {
		to := s.size
		if i+1 < len(s.runs) {
			to = s.runs[i+1]
		}
		sources = append(sources, &nameRun{r: bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), 64<<10)})
	}
	var last *vfs.BackupBlob
	for {
		var first *nameRun
		for _, r := range sources {
			if err := r.fill(); err != nil {
				return err
			}
			if r.head != nil && (first == nil || byID(*r.head, *first.head) < 0) {
				first = r
			}
		}
		if first == nil {
			return nil
		}
		b := first.head
		first.head = nil
		if last != nil && last.ID == b.ID {
			continue
		}
		last = b
		if err := fn(*b); err != nil {
			return err
		}
	}
}

func (s *nameSorter) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// nameRun is one sorted run.
type nameRun struct {
	memory []vfs.BackupBlob
	r      *bufio.Reader
	head   *vfs.BackupBlob
}

func (r *nameRun) fill() error {
	if r.head != nil {
		return nil
	}
	if r.r == nil {
		if len(r.memory) > 0 {
			r.head, r.memory = &r.memory[0], r.memory[1:]
		}
		return nil
	}
	var b [nameBytes]byte
	if _, err := io.ReadFull(r.r, b[:]); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	id, err := cluster.ParseBlobID(b[:cluster.BlobIDBytes])
	r.head = &vfs.BackupBlob{ID: id, Size: int64(binary.BigEndian.Uint64(b[16:])), CRC: binary.BigEndian.Uint64(b[24:])}
	return err
}
