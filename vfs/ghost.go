package vfs

import (
	"context"
	"sync"
	"time"

	"ogw/cluster"
)

const (
	// ghostTime is how long a directory that vanished by itself is
	// remembered: `rm -r` removes a directory right after its last entry.
	ghostTime = 10 * time.Second
	// maxGhosts bounds the table; the oldest are forgotten first.
	maxGhosts = 4096
)

// ghost is an implied directory that vanished with its last entry.
type ghost struct {
	parent Ino
	name   string // stored
	ino    Ino
}

// ghostTable remembers the implied directories that vanished a moment ago,
// so that whoever empties one and then removes it, as `rm -r` does, succeeds:
// Rmdir of a ghost is no error, and ReadDir of one shows nothing. Everything
// else finds a ghost as absent as it is.
type ghostTable struct {
	mu    sync.Mutex
	now   func() time.Time
	byIno map[Ino]ghostEntry
	byKey map[ghostKey]Ino
	queue []ghostEntry // in order of their ends
}

type ghostKey struct {
	parent Ino
	name   string
}

type ghostEntry struct {
	ghost
	until time.Time
}

func (g *ghostTable) init(now func() time.Time) {
	g.now = now
	g.byIno = make(map[Ino]ghostEntry)
	g.byKey = make(map[ghostKey]Ino)
}

func (g *ghostTable) add(list []ghost) {
	if len(list) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, v := range list {
		e := ghostEntry{v, now.Add(ghostTime)}
		g.byIno[v.ino] = e
		g.byKey[ghostKey{v.parent, v.name}] = v.ino
		g.queue = append(g.queue, e)
	}
	for len(g.queue) > 0 && (len(g.queue) > maxGhosts || now.After(g.queue[0].until)) {
		g.drop(g.queue[0].ghost)
		g.queue = g.queue[1:]
	}
}

func (g *ghostTable) drop(v ghost) {
	delete(g.byIno, v.ino)
	if k := (ghostKey{v.parent, v.name}); g.byKey[k] == v.ino {
		delete(g.byKey, k)
	}
}

// take tells whether parent/name is a ghost, which then is none any more.
func (g *ghostTable) take(parent Ino, name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ino, ok := g.byKey[ghostKey{parent, name}]
	if !ok {
		return false
	}
	e := g.byIno[ino]
	g.drop(e.ghost)
	return !g.now().After(e.until)
}

// takeShown is take for a name as the POSIX doors show it.
func (g *ghostTable) takeShown(parent Ino, p posixName) bool {
	if p.file {
		return false
	}
	if p.hash == nil {
		return g.take(parent, p.stored)
	}
	g.mu.Lock()
	name, ok := "", false
	for k := range g.byKey {
		if h := nameHash(k.name, true); k.parent == parent && string(h[:]) == string(p.hash) {
			name, ok = k.name, true
		}
	}
	g.mu.Unlock()
	return ok && g.take(parent, name)
}

// is tells whether ino is a ghost.
func (g *ghostTable) is(ino Ino) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.byIno[ino]
	return ok && !g.now().After(e.until)
}

// pruneRest removes empty implied directories in transactions of their own.
// What fails stays an empty directory, which Check finds.
func (fs *FS) pruneRest(ctx context.Context, dirs []Ino) {
	for _, dir := range dirs {
		err := fs.update(ctx, func(t cluster.Txn, o *op) error { return o.pruneDir(t, dir) })
		if err != nil {
			fs.log.Warn("empty implied directory not removed", "inode", uint64(dir), "error", err)
		}
	}
}
