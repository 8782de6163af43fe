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

// maxJobKeys bounds what a job holds of blobs that are known, and of those that are gone.
const maxJobKeys = 16 << 10

// planner makes jobs of the blobs.
type planner struct {
	b    *run
	jobs chan<- *job
	j    *job
}

func (b *run) plan(ctx context.Context, jobs chan<- *job) error {
	p := &planner{b, jobs, &job{}}
	err := b.names.each(func(x vfs.BackupBlob) error { return p.blob(ctx, x) })
	if err != nil {
		return err
	}
	return p.send()
}

// send hands the job on, and begins the next.
func (p *planner) send() error {
	if len(p.j.keys) == 0 {
		return nil
	}
	b, next := p.b, p.j
	p.j = &job{}
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
	case p.jobs <- next:
		return nil
	case <-b.uploads.ctx.Done():
		return context.Cause(b.uploads.ctx)
	}
}

// add adds a key to the job, or to the next if it is full.
func (p *planner) add(key []byte, known *entry, writes bool) error {
	if len(p.j.keys) >= p.b.jobKeys {
		if err := p.send(); err != nil {
			return err
		}
	}
	p.j.keys = append(p.j.keys, key)
	p.j.known = append(p.j.known, known)
	p.j.writes = append(p.j.writes, writes)
	return nil
}

func (p *planner) blob(ctx context.Context, x vfs.BackupBlob) error {
	key := blobKey(x.ID)
	s := blobSum(x.CRC)
	old, err := p.passed(ctx, key)
	if err != nil {
		return err
	}
	known := old
	if old == nil || old.kind != entryPiece || !old.piece.same(s, int(x.Size)) {
		if known, err = p.b.found(ctx, key, s, int(x.Size)); err != nil {
			return err
		}
	}
	if known == nil && (p.j.bytes+x.Size > packBytes && len(p.j.move) > 0 || len(p.j.move) == admin.MaxBackupBlobs) {
		if err := p.send(); err != nil {
			return err
		}
	}
	if err := p.add(key, known, known != nil && (p.b.full || known != old)); err != nil {
		return err
	}
	if p.j.first == (cluster.BlobID{}) {
		p.j.first = x.ID
	}
	if known == nil {
		p.j.move = append(p.j.move, x)
		p.j.bytes += x.Size
	}
	p.j.count++
	p.j.size += x.Size
	return nil
}

// passed returns the old entry of key; those before it are gone, as jobs show.
func (p *planner) passed(ctx context.Context, key []byte) (*entry, error) {
	old := p.b.old
	for {
		e, err := old.head(ctx)
		if err != nil || e == nil || before(key, e.key) {
			return nil, err
		}
		old.pop()
		if bytes.Equal(e.key, key) {
			return e, nil
		}
		if p.b.full { // a new list says nothing about them
			continue
		}
		if err := p.add(e.key, &entry{key: e.key, kind: entryDeleted}, true); err != nil {
			return nil, err
		}
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
	if j.first != (cluster.BlobID{}) { // else all of them are gone
		b.held.release(j.first)
	}
	b.snap.Blobs += j.count
	b.snap.Bytes += j.size
	b.tell(func(p *Progress) { p.Blobs, p.Bytes = p.Blobs+j.count, p.Bytes+j.size })
	return nil
}
