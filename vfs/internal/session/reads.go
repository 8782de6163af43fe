package session

import (
	"cmp"
	"context"
	"slices"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/record"
)

// Settle is Session.Settle, for all gateways, this one included.
func (l *Lease) Settle(ctx context.Context) (held Held, err error) {
	var epoch uint64
	err = l.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if err := l.read(t); err != nil {
			return err
		}
		n, err := record.Counter(t, record.CounterEpoch)
		if err != nil {
			return err
		}
		epoch = n + 1
		return record.SetCounter(t, record.CounterEpoch, epoch)
	})
	for err == nil && held.Contents == nil {
		if err = pause.For(ctx, lookEvery); err != nil {
			break
		}
		err = l.kv.View(ctx, func(r cluster.Reader) (err error) {
			held, err = settled(r, epoch)
			return err
		})
	}
	return held, err
}

// settled returns what the gateways named, nothing if one did not say that epoch yet.
func settled(r cluster.Reader, epoch uint64) (Held, error) {
	held := Held{make(map[record.ContentID]bool), make(map[record.Ino]bool)}
	list, err := reads(r)
	if err != nil {
		return Held{}, err
	}
	for i := range list {
		if list[i].Epoch < epoch {
			return Held{}, nil
		}
		for _, c := range list[i].Contents {
			held.Contents[c] = true
		}
		for _, ino := range list[i].Inodes {
			held.Inodes[ino] = true
		}
	}
	return held, nil
}

// reads returns what each gateway said last.
func reads(r cluster.Reader) ([]record.Reads, error) {
	gateways, err := record.Gateways(r)
	if err != nil {
		return nil, err
	}
	keys := make([][]byte, len(gateways))
	for i := range gateways {
		keys[i] = record.ReadKey(gateways[i].ID)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	list := make([]record.Reads, len(values))
	for i, v := range values {
		if v == nil { // it has the store alone, and this one was put out
			return nil, errLost
		}
		if list[i], err = record.DecodeReads(v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// First returns the first number that a gateway may use which is not stored yet: what
// has a smaller one, and nothing names, is left by one that is gone.
func (l *Lease) First(r cluster.Reader) (uint64, error) {
	list, err := reads(r)
	if err == nil && len(list) == 0 {
		err = errLost
	}
	if err != nil {
		return 0, err
	}
	return slices.MinFunc(list, func(a, b record.Reads) int { return cmp.Compare(a.First, b.First) }).First, nil
}

// Alive reports whether a gateway uses the store.
func (l *Lease) Alive(r cluster.Reader, id uint64) (bool, error) {
	v, err := r.Get(record.FenceKey(id))
	return v != nil, err
}
