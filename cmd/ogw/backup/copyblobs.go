package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// job is a group of blobs in order: those that are to be moved fit one pack.
type job struct {
	pack   *packBuilder
	move   []vfs.BackupBlob
	bytes  int64
	known  []*entry // of all blobs; nil: moved by this job, or unavailable
	keys   [][]byte
	first  cluster.BlobID
	writes []bool // an entry of a known one is written
	count  int64
	size   int64
	done   chan struct{}
	found  map[string]*entry
}

// blobs moves those that the repository does not have, groups of them beside
// each other, and writes their entries in order.
func (b *run) blobs(ctx context.Context) error {
	jobs := make(chan *job, jobsInFlight)
	written := make(chan error, 1)
	go func() { written <- b.write(jobs) }()
	err := b.plan(ctx, jobs)
	close(jobs)
	if err != nil {
		b.uploads.cancel(err)
	}
	if e := <-written; err == nil {
		err = e
	}
	return err
}

// plan makes jobs of the blobs.
func (b *run) plan(ctx context.Context, jobs chan<- *job) error {
	j := &job{}
	send := func() error {
		if len(j.keys) == 0 {
			return nil
		}
		next := j
		j = &job{}
		next.done = make(chan struct{})
		if len(next.move) > 0 {
			next.pack = b.newPack()
			if err := b.uploads.run(func(ctx context.Context) error { return b.moveJob(ctx, next) }); err != nil {
				return err
			}
		} else {
			close(next.done)
		}
		select {
		case jobs <- next:
			return nil
		case <-b.uploads.ctx.Done():
			return context.Cause(b.uploads.ctx)
		}
	}
	err := b.names.each(func(x vfs.BackupBlob) error {
		key := blobKey(x.ID)
		s := blobSum(x.CRC)
		old, err := b.passed(ctx, key, j)
		if err != nil {
			return err
		}
		known := old
		if old == nil || old.kind != entryPiece || !old.piece.same(s, int(x.Size)) {
			if known, err = b.found(ctx, key, s, int(x.Size)); err != nil {
				return err
			}
		}
		if known == nil && (j.bytes+x.Size > packBytes && len(j.move) > 0 || len(j.move) == admin.MaxBackupBlobs) || len(j.keys) == maxJobKeys {
			if err := send(); err != nil {
				return err
			}
		}
		if j.first == (cluster.BlobID{}) {
			j.first = x.ID
		}
		j.keys = append(j.keys, key)
		j.known = append(j.known, known)
		j.writes = append(j.writes, known != nil && (b.full || known != old))
		if known == nil {
			j.move = append(j.move, x)
			j.bytes += x.Size
		}
		j.count++
		j.size += x.Size
		return nil
	})
	if err != nil {
		return err
	}
	return send()
}

// maxJobKeys bounds a job whose blobs are known.
const maxJobKeys = 16 << 10

// passed returns the old entry of key; those before it are gone, as j shows.
func (b *run) passed(ctx context.Context, key []byte, j *job) (*entry, error) {
	for {
		e, err := b.old.head(ctx)
		if err != nil || e == nil || before(key, e.key) {
			return nil, err
		}
		b.old.pop()
		if bytes.Equal(e.key, key) {
			return e, nil
		}
		j.keys = append(j.keys, e.key)
		j.known = append(j.known, &entry{key: e.key, kind: entryDeleted})
		j.writes = append(j.writes, !b.full)
	}
}

// moveJob reads the blobs of a job and writes its pack.
func (b *run) moveJob(ctx context.Context, j *job) error {
	defer close(j.done)
	j.found = make(map[string]*entry, len(j.move))
	var buf []byte
	data := func(_ int, p []byte) error {
		buf = append(buf, p...)
		return nil
	}
	done := func(i int, damage error) error {
		x := &j.move[i]
		key := blobKey(x.ID)
		if damage == nil && (int64(len(buf)) != x.Size || crc64nvme.Checksum(buf) != x.CRC) {
			damage = fmt.Errorf("the bytes of blob %v do not have their checksum", x.ID)
		}
		switch {
		case damage == nil:
			j.found[string(key)] = &entry{key: key, kind: entryPiece, piece: j.pack.add(key, buf, blobSum(x.CRC))}
		case errors.Is(damage, vfs.ErrBlobDeleted):
			j.count--
			j.size -= x.Size
		default:
			b.damage.note(x.ID)
		}
		buf = buf[:0]
		return nil
	}
	if err := b.held.source.BackupBlobs(ctx, b.held.ID, j.move, data, done); err != nil {
		return err
	}
	if len(j.found) == 0 {
		return nil
	}
	pack := j.pack.build()
	j.pack.data = nil
	if err := b.uploads.pace.wait(ctx, len(pack)); err != nil {
		return err
	}
	b.moved.Add(int64(len(pack)))
	return b.repo.Put(ctx, packName(j.pack.session, j.pack.n), pack, false)
}

// write writes the entries of jobs, in order.
func (b *run) write(jobs <-chan *job) (err error) {
	for j := range jobs {
		if err != nil {
			continue
		}
		select {
		case <-j.done:
		case <-b.uploads.ctx.Done():
		}
		if err = context.Cause(b.uploads.ctx); err == nil {
			err = b.writeJob(j)
		}
		if err != nil {
			b.uploads.cancel(err)
		}
	}
	return err
}

func (b *run) writeJob(j *job) error {
	for i, key := range j.keys {
		e, write := j.known[i], j.writes[i]
		if e == nil {
			e = j.found[string(key)]
			write = e != nil
			if e == nil && !b.full { // damaged: an older one of that name is not it
				e, write = &entry{key: key, kind: entryDeleted}, true
			}
		}
		if !write {
			continue
		}
		if err := b.out.add(e); err != nil {
			return err
		}
	}
	b.held.release(j.first)
	b.snap.Blobs += j.count
	b.snap.Bytes += j.size
	b.tell(func(p *Progress) { p.Blobs, p.Bytes = p.Blobs+j.count, p.Bytes+j.size })
	return nil
}
