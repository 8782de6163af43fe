package rados

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ogw/cluster"
)

// memPool is a pool in memory, which several clients may have. fail, if set, is called before
// each request that changes something, and decides what becomes of it.
type memPool struct {
	mu      sync.Mutex
	objects map[string][]byte
	pairs   map[string]map[string][]byte
	fail    func(what string) (done bool, err error)
	// requests counts all.
	requests atomic.Int64
}

func newMemPool() *memPool {
	return &memPool{objects: map[string][]byte{}, pairs: map[string]map[string][]byte{}}
}

// change makes a change, unless it is to fail. One that is done may be answered by an error.
func (p *memPool) change(ctx context.Context, what string, do func() error) error {
	p.requests.Add(1)
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	done, failed := true, error(nil)
	if p.fail != nil {
		done, failed = p.fail(what)
	}
	if done {
		if err := do(); err != nil {
			return err
		}
	}
	return failed
}

func (p *memPool) Create(ctx context.Context, name string, data []byte) error {
	return p.change(ctx, "create "+name, func() error {
		if _, ok := p.objects[name]; ok {
			return fmt.Errorf("%w: %s", cluster.ErrExists, name)
		}
		p.objects[name] = bytes.Clone(data)
		return nil
	})
}

func (p *memPool) Replace(ctx context.Context, name string, old, data []byte) (done bool, err error) {
	err = p.change(ctx, "replace "+name, func() error {
		if done = bytes.Equal(p.objects[name], old); done {
			p.objects[name] = bytes.Clone(data)
		}
		return nil
	})
	return done, err
}

func (p *memPool) Read(ctx context.Context, name string, fn func(parts [][]byte) error, spans ...Span) error {
	p.requests.Add(1)
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	data, ok := p.objects[name]
	p.mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: %s", cluster.ErrNotFound, name)
	}
	var parts [][]byte
	for _, s := range spans {
		from := min(s.Off, int64(len(data)))
		parts = append(parts, data[from:min(s.Off+s.Len, int64(len(data)))])
	}
	return fn(parts)
}

func (p *memPool) Remove(ctx context.Context, name string) error {
	return p.change(ctx, "remove "+name, func() error {
		if _, ok := p.objects[name]; !ok {
			return fmt.Errorf("%w: %s", cluster.ErrNotFound, name)
		}
		delete(p.objects, name)
		delete(p.pairs, name)
		return nil
	})
}

func (p *memPool) Add(ctx context.Context, name, key string, value []byte) error {
	return p.change(ctx, "add "+name, func() error {
		if p.pairs[name] == nil {
			p.pairs[name] = map[string][]byte{}
		}
		p.pairs[name][key] = bytes.Clone(value)
		return nil
	})
}

func (p *memPool) Drop(ctx context.Context, name string, keys ...string) error {
	return p.change(ctx, "drop "+name, func() error {
		for _, key := range keys {
			delete(p.pairs[name], key)
		}
		return nil
	})
}

func (p *memPool) Entries(ctx context.Context, name, after string, n int) (entries []Entry, more bool, err error) {
	p.requests.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(p.pairs[name])) {
		if key > after && len(entries) == n {
			return entries, true, nil
		}
		if key > after {
			entries = append(entries, Entry{key, p.pairs[name][key]})
		}
	}
	return entries, false, nil
}

func (p *memPool) Locate(_ context.Context, name string) ([]cluster.Location, error) {
	return []cluster.Location{{Node: "memory", Path: name, Primary: true}}, nil
}

func (p *memPool) Usage(context.Context) (cluster.Usage, error) {
	return cluster.Usage{}, errors.New("unknown")
}

func (p *memPool) String() string { return "pool in memory" }
func (p *memPool) Close() error   { return nil }

// names returns the objects that begin with prefix.
func (p *memPool) names(prefix string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.objects {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

// entries counts those of the index.
func (p *memPool) entries() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, pairs := range p.pairs {
		if strings.HasPrefix(name, "index/") {
			n += len(pairs)
		}
	}
	return n
}
