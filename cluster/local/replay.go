package local

import (
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/metafs"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2"
)

// replayTail gives Pebble the commits that it lacks, durably. options are those
// from before Pebble was opened. It may have been interrupted before: a batch
// says which commit it is, so that Pebble knows how far it came.
func (kv *KV) replayTail(options metafs.OptionsFiles) error {
	stamp, closer, err := kv.db.Get(record.VersionKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return ioerr.Map(err)
	}
	records, err := kv.tail.Missing(stamp, options.Current)
	if e := closer.Close(); err == nil {
		err = ioerr.Map(e)
	}
	if err != nil || len(records) == 0 {
		return err
	}
	for _, r := range records {
		if err := kv.reapply(r.Batch); err != nil {
			return fmt.Errorf("replay the tail: %w", err)
		}
	}
	// Before the file is used again, or what it relies on is removed.
	if err := kv.durability.sync(); err != nil {
		return err
	}
	kv.log.Info("metadata store: changes that had not reached the log are back", "changes", len(records))
	return nil
}

// reapply commits a batch of the tail, not durably.
func (kv *KV) reapply(repr []byte) error {
	b := kv.db.NewBatch()
	if err := b.SetRepr(slices.Clone(repr)); err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrCorrupt, err)
	}
	if err := kv.applyBatch(b, true); err != nil {
		return err
	}
	return b.Close()
}
