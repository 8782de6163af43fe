package backup

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/secrets"
)

// pairsBytes is how much one call of Pairs passes, about: what the engine holds
// for a scan, it holds no longer than that, however slowly the pairs are taken.
const pairsBytes = 2 << 20

// kept is one key and its value.
type kept struct{ key, value []byte }

// Pairs calls fn for a page of the metadata in the order of their keys, from a
// key on, and blob for the blobs that they name, some of them more than once. It
// returns where the next page begins, nil after the last one: then the snapshot
// goes. What is passed may be kept.
func (b *Backup) Pairs(ctx context.Context, from []byte, fn func(key, value []byte) error, blob func(Blob) error) (next []byte, err error) {
	if err := b.Touch(); err != nil {
		return nil, err
	}
	if len(from) == 0 {
		from = []byte{0}
	}
	var page []kept
	err = b.run(ctx, func(r cluster.Reader) error {
		bytesRead := 0
		return r.Scan(from, []byte{0xff}, cluster.ScanOptions{}, func(k, v []byte) error {
			page = append(page, kept{bytes.Clone(k), bytes.Clone(v)})
			if bytesRead += len(k) + len(v); bytesRead >= pairsBytes {
				next = append(bytes.Clone(k), 0)
				return cluster.ErrStop
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for _, p := range page {
		v, keep := b.portable(p.key, p.value)
		if !keep {
			continue
		}
		if err := fn(p.key, v); err != nil {
			return nil, err
		}
		if err := namedBlobs(p.key, v, blob); err != nil {
			return nil, err
		}
	}
	if next != nil {
		return next, nil
	}
	if _, err := b.dueContents(ctx); err != nil { // while the snapshot is there
		return nil, err
	}
	b.read.Do(func() { close(b.done) })
	return nil, nil
}

// portable returns what a backup keeps of a pair.
func (b *Backup) portable(k, v []byte) (value []byte, keep bool) {
	switch k[0] {
	case record.TabSuper: // not that it was moved
		return b.store.Super.Encode(), true
	case record.TabUser, record.TabSecret:
		v, n, err := secrets.Recode(k, v, b.store.Keys, b.cfg.Keys, b.cfg.Keys != nil)
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case err != nil: // it may hold one in clear
			b.secrets.Lost++
			b.store.Log.Warn("a record with secrets is damaged: the backup is without it", "key", fmt.Sprintf("%q", k), "err", err)
			return nil, false
		case b.cfg.DropSecrets:
			b.secrets.Lost += n
		default:
			b.secrets.Sealed += n
		}
		return v, true
	}
	return v, !ofMedium(k)
}

// ofMedium reports whether a pair is about the medium that has it, and the processes
// that use it.
func ofMedium(k []byte) bool {
	switch k[0] {
	case record.TabDamaged, record.TabFence, record.TabBeat, record.TabRead, record.TabPurge, record.TabLock, record.TabWait, record.TabLocker, record.TabDoubt:
		return true
	case record.TabCounter:
		name := string(k[1:])
		return name == record.CounterErase || name == record.CounterClaims || name == record.CounterClaimer
	}
	return false
}

// namedBlobs returns the blobs that a pair names. What cannot be read names none.
func namedBlobs(k, v []byte, fn func(Blob) error) error {
	var content record.ContentID
	var list []record.Extent
	switch k[0] {
	case record.TabExtent:
		c, e, err := record.ParseExtent(k, v)
		if err != nil {
			return nil //nolint:nilerr // Check reports it
		}
		content, list = c, []record.Extent{e}
	case record.TabPart:
		p, err := record.DecodePart(k, v)
		if err != nil {
			return nil //nolint:nilerr // Check reports it
		}
		content, list = record.ContentID(record.InoOfKey(k)), p.Extents
	}
	for i := range list {
		if e := &list[i]; e.Kind == record.ExtentBlob {
			if err := fn(Blob{e.BlobID(content), e.BlobSize, e.BlobCRC}); err != nil {
				return err
			}
		}
	}
	return nil
}
