package nfsserver

import (
	"net/netip"
	"slices"
	"sync"

	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"
)

// mountEntry is what DUMP lists.
type mountEntry struct {
	client netip.Addr
	path   string
}

// mountTable is the mount list. It is kept in memory only: NFS needs no
// mounts to be known, and after a restart it fills again.
type mountTable struct {
	mu     sync.Mutex
	list   []mountEntry // oldest first
	places *share.Tally[subscriber.Key]
}

func newMountTable() *mountTable {
	return &mountTable{places: share.NewTally[subscriber.Key](maxMounts, addressMounts)}
}

func (t *mountTable) add(client netip.Addr, path string) {
	e := mountEntry{client, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.list, e) {
		return
	}
	key := subscriber.Of(client)
	if !t.places.Take(key, 1) {
		oldest := slices.IndexFunc(t.list, func(o mountEntry) bool { return subscriber.Of(o.client) == key })
		if oldest < 0 {
			return
		}
		t.list = slices.Delete(t.list, oldest, oldest+1) // its place is e's
	}
	t.list = append(t.list, e)
}

// remove takes a client's mount of path out, or with "" all of its mounts.
func (t *mountTable) remove(client netip.Addr, path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(e mountEntry) bool {
		gone := e.client == client && (path == "" || e.path == path)
		if gone {
			t.places.Give(subscriber.Of(client), 1)
		}
		return gone
	})
}

// paths are what a client has mounted.
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
