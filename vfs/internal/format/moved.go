package format

import (
	"context"
	"fmt"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// MarkMoved makes a store, opened before as super, one that was moved to a place. From
// then on Open refuses it, but for the move to there (Options.MovedTo).
func MarkMoved(ctx context.Context, kv cluster.KV, super record.Superblock, place string, now time.Time) error {
	m := record.Moved{Super: super, To: place, TimeNS: now.UnixNano()}
	return fserr.Map(kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error { return t.Set(record.SuperKey(), m.Encode()) }))
}

// UndoMove makes a store that was moved one again. It returns where the other one is, ""
// if the store was not moved.
func UndoMove(ctx context.Context, kv cluster.KV) (place string, err error) {
	err = kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		b, err := t.Get(record.SuperKey())
		if err != nil {
			return err
		}
		m, moved, err := record.DecodeMoved(b)
		place = m.To
		if err != nil || !moved {
			return err
		}
		return t.Set(record.SuperKey(), m.Super.Encode())
	})
	return place, fserr.Map(err)
}

// admit reports why a store that was moved is not opened by the move to a place.
func admit(m *record.Moved, place string) error {
	switch {
	case place != m.To:
		return m.Refusal()
	case m.Super.Version != record.FormatVersion: // which convert would make one again
		return fmt.Errorf("%w: the move to %s was begun by an older program; end it with that, or give it up with ogw migrate --undo", cluster.ErrFormat, m.To)
	}
	return nil
}
