package backup

import (
	"context"
	"slices"
	"sync"
)

// cachedBytes bounds the packs in memory of a packCache: those that are being read,
// those in use, and those that are kept. A longer one is there alone.
const cachedBytes = 128 << 20

// packCache reads packs, and keeps those that were read last: entries are in the
// order of their keys, which is nearly that of packs.
type packCache struct {
	storage Storage
	limit   int             // cachedBytes, except in tests
	read    func(bytes int) // of the storage

	mu    sync.Mutex
	list  []*cachedPack // the one used last at the end
	bytes int           // of them
	freed chan struct{} // closed when one is not in use any more
}

type cachedPack struct {
	name  string
	bytes int // until it is read, what it will have at least
	users int
	once  sync.Once
	pack  *pack
	err   error
}

// use calls fn with a pack of about so many bytes, which is in memory until fn returns.
// A caller that waits for memory has none: it uses one pack at a time.
func (c *packCache) use(ctx context.Context, name string, bytes int, fn func(*pack) error) error {
	e, err := c.enter(ctx, name, bytes)
	if err != nil {
		return err
	}
	defer c.leave(e)
	e.once.Do(func() { c.load(ctx, e) })
	if e.err != nil {
		return e.err
	}
	return fn(e.pack)
}

// enter returns the entry of a pack, in use, when there is memory for it.
func (c *packCache) enter(ctx context.Context, name string, bytes int) (*cachedPack, error) {
	for {
		e, freed := c.tryEnter(name, bytes)
		if e != nil {
			return e, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *packCache) tryEnter(name string, bytes int) (e *cachedPack, freed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.list, func(x *cachedPack) bool { return x.name == name }); i >= 0 {
		e = c.list[i]
		c.list = append(slices.Delete(c.list, i, i+1), e)
		e.users++
		return e, nil
	}
	for c.bytes+bytes > c.limit {
		i := slices.IndexFunc(c.list, func(x *cachedPack) bool { return x.users == 0 })
		if i < 0 {
			break
		}
		c.bytes -= c.list[i].bytes
		c.list = slices.Delete(c.list, i, i+1)
	}
	if c.bytes > 0 && c.bytes+bytes > c.limit {
		if c.freed == nil {
			c.freed = make(chan struct{})
		}
		return nil, c.freed
	}
	e = &cachedPack{name: name, bytes: bytes, users: 1}
	c.list = append(c.list, e)
	c.bytes += bytes
	return e, nil
}

func (c *packCache) leave(e *cachedPack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users == 0 && c.freed != nil {
		close(c.freed)
		c.freed = nil
	}
}

// load reads a pack. One that cannot be read stays as that, and has no bytes.
func (c *packCache) load(ctx context.Context, e *cachedPack) {
	p, err := readPack(ctx, c.storage, e.name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= e.bytes
	if e.bytes, e.pack, e.err = 0, p, err; err != nil {
		return
	}
	e.bytes = len(p.b)
	c.bytes += e.bytes
	c.read(e.bytes)
}
