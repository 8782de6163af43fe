package backup

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
)

const (
	// sparsePart: a pack of which less than one part in so many is needed is
	// made smaller.
	sparsePart = 2
	// pruneAtOnce bounds the pieces that are kept in mind to make packs smaller;
	// there are as many passes over the catalogs as it takes.
	pruneAtOnce = 1 << 20
)

// Pruned describes what Prune did.
type Pruned struct {
	Snapshots int   `json:"snapshots"` // that remain
	Objects   int   `json:"removed_objects"`
	Shrunk    int   `json:"shrunk_packs"`
	Freed     int64 `json:"freed_bytes"`
	Left      int64 `json:"bytes"` // of packs and catalogs that remain
}

// Remove removes snapshots and what only they needed.
func Remove(ctx context.Context, repo *Repository, ids []string) (Pruned, error) {
	ctx, lock, err := repo.Lock(ctx, NewHolder("prune"))
	if err != nil {
		return Pruned{}, err
	}
	defer lock.Release()
	have, err := repo.ids(ctx)
	if err != nil {
		return Pruned{}, err
	}
	for _, id := range ids {
		if !slices.Contains(have, id) {
			return Pruned{}, fmt.Errorf("snapshot %s in %s: %w", id, repo, ErrNotExist)
		}
	}
	for _, id := range ids {
		if err := repo.Delete(ctx, snapshotName(id)); err != nil {
			return Pruned{}, err
		}
	}
	return prune(ctx, repo, lock)
}

// Keep returns which of snapshots, the oldest first, are not among the last n of
// their store.
func Keep(list []*Snapshot, n int) (remove []string) {
	kept := map[string]int{}
	for i := len(list) - 1; i >= 0; i-- {
		if kept[list[i].FSID]++; kept[list[i].FSID] > n {
			remove = append(remove, list[i].ID)
		}
	}
	return remove
}

type packID struct {
	session uint64
	n       uint32
}

// prune removes what no snapshot needs, with the lock held: nobody else writes. A
// snapshot that cannot be read stops it, since nobody knows what that needs.
func prune(ctx context.Context, repo *Repository, lock Lock) (done Pruned, err error) {
	list, bad, err := repo.Snapshots(ctx)
	if err == nil {
		err = bad
	}
	if err != nil {
		return done, err
	}
	done.Snapshots = len(list)
	all := contents{repo, lock, list, distinctLayers(list)}
	live := make(map[packID]int64)
	err = all.eachLive(ctx, func(p *piece) { live[packID{p.session, p.pack}] += int64(p.len) })
	if err != nil {
		return done, err
	}
	sparse, err := all.removeDead(ctx, live, &done)
	if err != nil {
		return done, err
	}
	for len(sparse) > 0 {
		if sparse, err = all.shrink(ctx, sparse, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// contents are the snapshots of a repository, and the layers that they use.
type contents struct {
	repo   *Repository
	lock   Lock
	list   []*Snapshot
	layers map[string]*Layer
}

// distinctLayers returns the layers that snapshots use, each once.
func distinctLayers(list []*Snapshot) map[string]*Layer {
	out := map[string]*Layer{}
	for _, s := range list {
		for i := range s.Layers {
			out[s.Layers[i].Session] = &s.Layers[i]
		}
	}
	return out
}

// eachLive calls fn for each piece that a snapshot uses, once.
func (c *contents) eachLive(ctx context.Context, fn func(*piece)) error {
	type source struct {
		r    *layerReader
		head *entry // nil: at another key
	}
	sources := map[string]*source{}
	for name, l := range c.layers {
		r, err := newLayerReader(c.repo, l, nil, func(int) {})
		if err != nil {
			return err
		}
		sources[name] = &source{r: r}
	}
	used := map[piece]bool{}
	for {
		var key []byte
		for _, s := range sources {
			e, err := s.r.head(ctx)
			if err != nil {
				return err
			}
			if e != nil && (key == nil || before(e.key, key)) {
				key = e.key
			}
		}
		if key == nil {
			return nil
		}
		there := 0
		var only *entry
		for _, s := range sources {
			e, err := s.r.head(ctx)
			if err != nil {
				return err
			}
			if s.head = nil; e != nil && bytes.Equal(e.key, key) {
				s.head, only = e, e
				there++
				s.r.pop()
			}
		}
		if there == 1 { // as nearly always: whoever has the layer uses it
			if only.kind == entryPiece {
				fn(&only.piece)
			}
			continue
		}
		clear(used)
		for _, snap := range c.list {
			for i := len(snap.Layers) - 1; i >= 0; i-- {
				e := sources[snap.Layers[i].Session].head
				if e == nil {
					continue
				}
				if e.kind == entryPiece && !used[e.piece] {
					used[e.piece] = true
					fn(&e.piece)
				}
				break
			}
		}
	}
}

// removeDead removes the objects that nothing needs, and returns the packs that
// are to be made smaller, with the bytes that are needed of them.
func (c *contents) removeDead(ctx context.Context, live map[packID]int64, done *Pruned) (sparse map[packID]int64, err error) {
	type object struct {
		name string
		size int64
	}
	var dead []object
	sparse = make(map[packID]int64)
	unfinished, err := c.repo.sessions(ctx) // what they moved, the next backup uses
	if err != nil {
		return nil, err
	}
	look := func(o Object, needed bool) {
		if needed {
			done.Left += o.Size
		} else {
			dead = append(dead, object{o.Name, o.Size})
		}
	}
	err = c.repo.List(ctx, "packs/", func(o Object) error {
		session, err := parseSession(path.Base(path.Dir(o.Name)))
		n, e := strconv.ParseUint(path.Base(o.Name), 10, 32)
		if err != nil || e != nil {
			return nil //nolint:nilerr // not ours
		}
		id := packID{session, uint32(n)}
		bytes := live[id]
		look(o, bytes > 0 || slices.Contains(unfinished, session))
		if bytes > 0 && bytes < o.Size/sparsePart {
			sparse[id] = bytes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = c.repo.List(ctx, "catalogs/", func(o Object) error {
		look(o, c.layers[path.Base(path.Dir(o.Name))] != nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Nobody wrote since the snapshots were read; and a later backup needs nothing of these.
	if err := c.lock.Renew(ctx); err != nil {
		return nil, err
	}
	for _, o := range dead {
		if err := c.repo.Delete(ctx, o.name); err != nil {
			return nil, err
		}
		done.Freed += o.size
		done.Objects++
	}
	return sparse, nil
}

// shrink makes some packs smaller, and returns the others.
func (c *contents) shrink(ctx context.Context, sparse map[packID]int64, done *Pruned) (rest map[packID]int64, err error) {
	rest = make(map[packID]int64)
	keep := make(map[packID]map[uint32]bool)
	pieces := 0
	for id, bytes := range sparse {
		if pieces += int(bytes/smallValue) + 1; len(keep) > 0 && pieces > pruneAtOnce {
			rest[id] = bytes
			continue
		}
		keep[id] = make(map[uint32]bool)
	}
	err = c.eachLive(ctx, func(p *piece) {
		if m := keep[packID{p.session, p.pack}]; m != nil {
			m[p.off] = true
		}
	})
	if err != nil {
		return nil, err
	}
	for id, offsets := range keep {
		name := packName(id.session, id.n)
		old, err := getPart(ctx, c.repo, name)
		if err != nil {
			return nil, err
		}
		small, err := shrunk(old, offsets)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
		}
		if err := c.lock.Renew(ctx); err != nil { // or another may have used more of it
			return nil, err
		}
		if err := c.repo.Put(ctx, name, small, true); err != nil {
			return nil, err
		}
		done.Shrunk++
		done.Freed += int64(len(old) - len(small))
		done.Left -= int64(len(old) - len(small))
	}
	return rest, nil
}

// shrunk returns a pack with those pieces alone, under their names. Their bytes
// are copied as they are: their checksums stand in the catalogs.
func shrunk(b []byte, keep map[uint32]bool) ([]byte, error) {
	x, err := parseIndex(b)
	if err != nil {
		return nil, err
	}
	n, _ := indexLength(b) // it was just parsed
	pos := packHead + n
	var out packIndex
	var data []byte
	for _, p := range x.pieces {
		end := pos + int(p.len)
		if end > len(b) {
			return nil, errShort
		}
		if keep[p.off] {
			out.pieces = append(out.pieces, p)
			data = append(data, b[pos:end]...)
		}
		pos = end
	}
	return buildPack(&out, data), nil
}
