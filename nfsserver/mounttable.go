package nfsserver

import (
	"net/netip"
	"slices"
	"sync"
)

// mountEntry is what DUMP lists.
type mountEntry struct {
	client netip.Addr
	path   string
}

// mountTable is the mount list. It is kept in memory only: NFS needs no
// mounts to be known, and after a restart it fills again.
type mountTable struct {
	mu   sync.Mutex
	list []mountEntry // oldest first
}

func (t *mountTable) add(client netip.Addr, path string) {
	e := mountEntry{client, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.list, e) {
		return
	}
	if len(t.list) >= maxMounts {
		t.list = t.list[1:]
	}
	t.list = append(t.list, e)
}

// remove takes a client's mount of path out, or with "" all of its mounts.
func (t *mountTable) remove(client netip.Addr, path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e mountEntry) bool {
		return e.client == client && (path == "" || e.path == path)
	})
}

func (t *mountTable) all() []mountEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

func (t *mountTable) paths(client netip.Addr) (list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.list {
		if e.client == client {
			list = append(list, e.path)
		}
	}
	return list
}
