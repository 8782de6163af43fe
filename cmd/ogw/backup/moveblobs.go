package backup

import (
	"context"
	"errors"
	"fmt"
	"hash"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

const (
	// moveStreams is how many blobs are read and written at a time: an engine makes
	// one flush of many.
	moveStreams = 8
	// moveJobBytes and moveJobBlobs bound what is asked for at once, but for one blob.
	moveJobBytes = 16 << 20
	moveJobBlobs = 128
)

// Or the source would refuse it.
const _ = uint(admin.MaxBackupBlobs - moveJobBlobs)

// moveJob is a group of blobs, in the order of their IDs.
type moveJob struct {
	blobs []vfs.BackupBlob
	done  bool
}

// copyBlobs moves the blobs that are missing, groups of them beside each other.
func (m *move) copyBlobs(ctx context.Context) error {
	j, bytes := &moveJob{}, int64(0)
	send := func() error {
		if len(j.blobs) == 0 {
			return nil
		}
		next := j
		j, bytes = &moveJob{}, 0
		m.mu.Lock()
		m.jobs = append(m.jobs, next)
		m.mu.Unlock()
		return m.uploads.run(func(ctx context.Context) error {
			if err := m.moveBlobs(ctx, next.blobs); err != nil {
				return err
			}
			m.jobDone(next)
			return nil
		})
	}
	err := m.missing.each(func(x vfs.BackupBlob) error {
		if bytes+x.Size > moveJobBytes || len(j.blobs) == moveJobBlobs {
			if err := send(); err != nil {
				return err
			}
		}
		j.blobs = append(j.blobs, x)
		bytes += x.Size
		return ctx.Err()
	})
	if err == nil {
		err = send()
	}
	if err != nil {
		return err
	}
	return m.uploads.wait()
}

// jobDone tells the source which blobs are not needed any more.
func (m *move) jobDone(j *moveJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.done = true
	for len(m.jobs) > 0 && m.jobs[0].done {
		m.jobs = m.jobs[1:]
	}
	if len(m.jobs) > 0 {
		m.held.release(m.jobs[0].blobs[0].ID)
	}
}

func (m *move) moveBlobs(ctx context.Context, list []vfs.BackupBlob) error {
	w := moveWriter{m: m, ctx: ctx}
	defer w.abort()
	return m.held.source.BackupBlobs(ctx, m.held.ID, list,
		func(i int, p []byte) error { return w.write(&list[i], p) },
		func(i int, damage error) error { return w.end(&list[i], damage) })
}

// moveWriter writes blobs, one after the other.
type moveWriter struct {
	m   *move
	ctx context.Context
	out cluster.BlobWriter // of the blob that is under way; nil: it has no byte yet
	sum hash.Hash64
	n   int64
}

func (w *moveWriter) begin(x *vfs.BackupBlob) (err error) {
	if w.out == nil {
		w.sum, w.n = crc64nvme.New(), 0
		w.out, err = w.m.target.Blobs.Create(w.ctx, x.ID, x.Size)
	}
	return w.failed(x, err)
}

func (w *moveWriter) write(x *vfs.BackupBlob, p []byte) error {
	err := w.begin(x)
	if err == nil {
		err = w.m.uploads.pace.wait(w.ctx, len(p))
	}
	if err != nil {
		return err
	}
	w.n += int64(len(p))
	_, _ = w.sum.Write(p) // never fails
	_, err = w.out.Write(p)
	return w.failed(x, err)
}

func (w *moveWriter) failed(x *vfs.BackupBlob, err error) error {
	if err != nil {
		err = fmt.Errorf("write blob %v into the new store: %w", x.ID, err)
	}
	return err
}

func (w *moveWriter) abort() {
	if w.out != nil {
		w.out.Abort()
		w.out = nil
	}
}

// end ends a blob: it is stored, if it is what the metadata say.
func (w *moveWriter) end(x *vfs.BackupBlob, damage error) error {
	if damage == nil {
		if err := w.begin(x); err != nil {
			return err
		}
		if w.n != x.Size || w.sum.Sum64() != x.CRC {
			damage = errors.New("the bytes do not have their checksum")
		}
	}
	if damage != nil {
		w.abort()
		if errors.Is(damage, vfs.ErrBlobDeleted) {
			w.m.gone.Add(1)
		} else {
			w.m.damage.note(x.ID)
		}
		return nil
	}
	err := commitBlob(w.ctx, w.m.target.Blobs, w.out, cluster.BlobInfo{ID: x.ID, Size: x.Size}, blobSum(x.CRC))
	w.out = nil
	if err != nil {
		return w.failed(x, err)
	}
	w.m.copied.Add(1)
	w.m.copiedBytes.Add(x.Size)
	w.m.tell(func(p *Progress) { p.Blobs, p.Bytes = p.Blobs+1, p.Bytes+x.Size })
	return nil
}
