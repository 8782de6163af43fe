package backup

import (
	"bytes"
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// doubtsAtOnce bounds what is read ahead.
const doubtsAtOnce = 512

// doubts are the blobs that records of a store named which a Move removed or replaced
// there. Where the store that is moved was set back to an earlier time, the same name is
// that of another blob now, in whichever record, and its length can be the same. They are
// written no later than the record goes, and stay until the blobs were compared, however
// many passes are interrupted before.
type doubts struct {
	kv   cluster.KV
	list []record.Doubt // in the order of the blobs, behind those that were passed
	next []byte         // where those behind them begin; nil: nowhere
}

func newDoubts(kv cluster.KV) doubts { return doubts{kv: kv, next: []byte{record.TabDoubt}} }

// doubtsAbout returns what is doubtful when a record becomes another; v is nil if it goes.
func doubtsAbout(k, old, v []byte) (list []record.Doubt) {
	var now []Blob
	if v != nil {
		_ = namedBlobs(k, v, func(b Blob) error { now = append(now, b); return nil }) // fails with fn alone
	}
	_ = namedBlobs(k, old, func(b Blob) error {
		for _, x := range now {
			if x == b {
				return nil
			}
		}
		list = append(list, record.Doubt{Blob: b.ID, Size: b.Size, CRC: b.CRC})
		return nil
	})
	return list
}

// differ reports whether what is there under the name of b can be another blob. It is
// asked in the order of the names.
func (d *doubts) differ(ctx context.Context, b Blob) (bool, error) {
	differs := false
	for {
		for len(d.list) > 0 && !b.ID.Less(d.list[0].Blob) {
			x := d.list[0]
			differs = differs || x.Blob == b.ID && (x.Size != b.Size || x.CRC != b.CRC)
			d.list = d.list[1:]
		}
		if len(d.list) > 0 || d.next == nil {
			return differs, nil
		}
		if err := d.load(ctx); err != nil {
			return false, err
		}
	}
}

func (d *doubts) load(ctx context.Context) error {
	from := d.next
	_, to := record.Table(record.TabDoubt)
	err := d.kv.View(cluster.Relaxed(ctx), func(r cluster.Reader) error {
		d.list, d.next = nil, nil
		return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
			x, err := record.ParseDoubt(k)
			if err != nil {
				return err
			}
			if d.list = append(d.list, x); len(d.list) == doubtsAtOnce {
				d.next = append(bytes.Clone(k), 0)
				return cluster.ErrStop
			}
			return nil
		})
	})
	return fserr.Map(err)
}

// settle ends them: what differs is not there any more.
func (d *doubts) settle(ctx context.Context) error {
	from, to := record.Table(record.TabDoubt)
	for {
		c := changes{kv: d.kv}
		err := d.kv.View(cluster.Relaxed(ctx), func(r cluster.Reader) error {
			c.drop, c.bytes = nil, 0
			return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
				if !c.room(len(k)) {
					return cluster.ErrStop
				}
				c.remove(bytes.Clone(k))
				return nil
			})
		})
		if err != nil || c.count() == 0 {
			return fserr.Map(err)
		}
		if err := c.write(ctx, nil); err != nil {
			return err
		}
	}
}
