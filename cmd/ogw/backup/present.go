package backup

import (
	"context"

	"ogw/cluster"
)

// present goes through the blobs of a store in order.
type present struct {
	blobs cluster.Blobs
	// others gets the blobs that are not asked for; nil: they may be left out.
	others func(context.Context, cluster.BlobID) error

	list []cluster.BlobInfo
	from cluster.BlobID
	end  bool
}

// presentPage is how many are asked for at a time.
const presentPage = 4096

// find returns a blob if it is there; it is asked in the order of the IDs.
func (p *present) find(ctx context.Context, id cluster.BlobID) (*cluster.BlobInfo, error) {
	for {
		if err := p.pass(ctx, &id); err != nil {
			return nil, err
		}
		if len(p.list) > 0 {
			if first := p.list[0]; first.ID == id {
				p.list = p.list[1:]
				return &first, nil
			}
			return nil, nil
		}
		if p.end {
			return nil, nil
		}
		// What was asked for already was written meanwhile, or is passed.
		if p.others == nil && p.from.Less(id) {
			p.from = id
		}
		if err := p.load(ctx); err != nil {
			return nil, err
		}
	}
}

// pass drops the blobs before id, nil: all of the page.
func (p *present) pass(ctx context.Context, id *cluster.BlobID) error {
	for len(p.list) > 0 && (id == nil || p.list[0].ID.Less(*id)) {
		if p.others != nil {
			if err := p.others(ctx, p.list[0].ID); err != nil {
				return err
			}
		}
		p.list = p.list[1:]
	}
	return nil
}

// rest passes all that was not asked for.
func (p *present) rest(ctx context.Context) error {
	for {
		if err := p.pass(ctx, nil); err != nil || p.end {
			return err
		}
		if err := p.load(ctx); err != nil {
			return err
		}
	}
}

func (p *present) load(ctx context.Context) error {
	err := p.blobs.List(ctx, p.from, func(b cluster.BlobInfo) error {
		if p.list = append(p.list, b); len(p.list) == presentPage {
			return cluster.ErrStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p.end = len(p.list) < presentPage; len(p.list) > 0 {
		last := p.list[len(p.list)-1].ID
		p.from = cluster.BlobID{Content: last.Content, Seq: last.Seq + 1}
	}
	return nil
}
