package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// A store of format 1 knows users by name: 'u' holds their records, and the
// ACLs of the S3 door, which are JSON in a bucket attribute and in a header
// of objects and uploads, name them. Opening such a store converts it:
//
//  1. The superblock gets the new version, so that older programs keep away,
//     and key 'C' "convert" says where the conversion is.
//  2. Table by table (record.ConvertedTables, users first), a page of records is
//     converted in one transaction that moves "convert" on.
//  3. "convert" goes. Until then no Open returns: nobody renames or adds a
//     user while ACLs by name are about, so that a name is resolved to whom
//     it meant. Names without a user grant nobody.
//
// A process that dies leaves a step that was committed or one that was not;
// the next Open goes on. Several processes may convert at a time: the
// transactions compare "convert".
const (
	convertPage = 4096 // records looked at in one view
	// convertBatch is how many are changed in one transaction. A user with all
	// keys, or an ACL with all grants, is about what an engine with limits takes.
	convertBatch, limitedConvertBatch = 512, 1
)

// converter is one run of the conversion in this process.
type converter struct {
	kv      cluster.KV
	super   *record.Superblock
	opts    *Options
	names   map[string]record.UserID // names of format 1 that were looked up; "" is nobody
	changed int
}

// convert brings the store from format 1 to FormatVersion, or goes on with it.
func convert(ctx context.Context, kv cluster.KV, super *record.Superblock, o *Options) error {
	c := converter{kv: kv, super: super, opts: o, names: make(map[string]record.UserID)}
	ctx = cluster.Strict(ctx)
	if err := c.begin(ctx); err != nil {
		return err
	}
	started := c.opts.Now()
	for {
		state, err := c.state(ctx)
		if err != nil {
			return err
		}
		if state == nil {
			break
		}
		err = c.page(ctx, *state)
		if err != nil && !errors.Is(err, errConvertedElsewhere) {
			return fmt.Errorf("convert the store to format %d: %w", record.FormatVersion, err)
		}
	}
	if c.changed > 0 {
		c.opts.Log.Info("store converted: users and grants have IDs", "format", record.FormatVersion, "records", c.changed, "took", c.opts.Now().Sub(started))
	}
	return nil
}

// errConvertedElsewhere: another process made the step.
var errConvertedElsewhere = errors.New("the conversion went on elsewhere")

// begin writes the new version, unless that was done.
func (c *converter) begin(ctx context.Context) error {
	return fserr.Map(c.kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.SuperKey())
		if err != nil {
			return err
		}
		super, err := record.DecodeSuper(b)
		if err != nil || super.Version >= record.FormatVersion {
			return err
		}
		from := super.Version
		super.Version = record.FormatVersion
		*c.super = super
		if err := t.Set(record.SuperKey(), super.Encode()); err != nil || from > 1 {
			return err // nothing of format 2 changes: older programs keep away, that is all
		}
		// The secrets of its users stood in clear (package secrets).
		if err := record.SetCounter(t, record.CounterErase, 1); err != nil {
			return err
		}
		first := record.Conversion{Next: []byte{record.ConvertedTables[0]}}
		return t.Set(record.ConversionKey(), first.Encode())
	}))
}

// state returns where the conversion is, nil if it is over.
func (c *converter) state(ctx context.Context) (state *record.Conversion, err error) {
	err = c.kv.View(ctx, func(r cluster.Reader) error {
		b, err := r.Get(record.ConversionKey())
		if err != nil || b == nil {
			return err
		}
		s, err := record.DecodeConversion(b)
		state = &s
		return err
	})
	return state, fserr.Map(err)
}

// page looks at the records from state on, and converts those that need it.
func (c *converter) page(ctx context.Context, state record.Conversion) error {
	after := state
	table := []byte{record.ConvertedTables[state.Table]}
	var old [][]byte
	seen := 0
	err := c.kv.View(ctx, func(r cluster.Reader) error {
		old, seen = nil, 0
		return r.Scan(state.Next, cluster.PrefixEnd(table), cluster.ScanOptions{Limit: convertPage}, func(k, v []byte) error {
			seen++
			uid, change, err := isFormat1(k, v)
			if err != nil {
				c.skip(k, err)
			}
			if change {
				old = append(old, slices.Clone(k))
			}
			after.MaxUID = max(after.MaxUID, uid)
			after.Next = append(slices.Clone(k), 0)
			return nil
		})
	})
	if err != nil {
		return fserr.Map(err)
	}
	if seen < convertPage {
		if after.Table++; after.Table < len(record.ConvertedTables) {
			after.Next = []byte{record.ConvertedTables[after.Table]}
		}
	}
	batch := convertBatch
	if extents.PerTxn(c.kv) == extents.LimitedTxn {
		batch = limitedConvertBatch
	}
	for len(old) > batch {
		between := record.Conversion{Table: state.Table, MaxUID: after.MaxUID, Next: append(slices.Clone(old[batch-1]), 0)}
		if err := c.step(ctx, state, between, old[:batch]); err != nil {
			return err
		}
		state, old = between, old[batch:]
	}
	return c.step(ctx, state, after, old)
}

// step converts records in one transaction and moves the state from to to.
func (c *converter) step(ctx context.Context, from, to record.Conversion, keys [][]byte) error {
	err := fserr.Map(c.kv.Update(ctx, func(t cluster.Txn) error {
		b, err := t.Get(record.ConversionKey())
		if err != nil {
			return err
		}
		if !bytes.Equal(b, from.Encode()) {
			return errConvertedElsewhere
		}
		for _, k := range keys {
			if err := c.record(t, k); errors.Is(err, fserr.ErrCorrupt) {
				c.skip(k, err)
			} else if err != nil {
				return fmt.Errorf("record %q: %w", k, err)
			}
		}
		if to.Table < len(record.ConvertedTables) {
			return t.Set(record.ConversionKey(), to.Encode())
		}
		if to.MaxUID > 0 {
			if err := record.SetCounter(t, record.CounterUID, uint64(to.MaxUID)+1); err != nil {
				return err
			}
		}
		return t.Delete(record.ConversionKey())
	}))
	if err == nil {
		c.changed += len(keys)
	}
	return err
}

// skip leaves a damaged record to those who read it, and to Check, which need
// an open store.
func (c *converter) skip(k []byte, err error) {
	c.opts.Log.Warn("a damaged record is not converted", "key", fmt.Sprintf("%q", k), "err", err)
}

// record converts one record.
func (c *converter) record(t cluster.Txn, k []byte) error {
	v, err := t.Get(k)
	if err != nil || v == nil {
		return err
	}
	switch k[0] {
	case record.TabUserName:
		return c.user(t, string(k[1:]), v)
	case record.TabBucket:
		v, err = c.bucket(t, v)
	case record.TabInode:
		v, err = c.inode(t, k, v)
	case record.TabUpload:
		v, err = c.upload(t, k, v)
	}
	switch {
	case err != nil:
		return err
	case v == nil:
		return t.Delete(k)
	}
	return t.Set(k, v)
}
