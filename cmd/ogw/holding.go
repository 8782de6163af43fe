package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ogw/fusemount"
	"ogw/fusemount/holder"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// holderSocket is the socket's name in the data folder of the process that
// keeps mounts while no server runs.
const holderSocket = "holder.sock"

// holding is the process's connection to the holder of its mounts.
type holding struct {
	path string // of the socket

	mu     sync.Mutex
	client *holder.Client // nil: nothing is held
	// refused are mounts that were not taken over: nothing may look at them,
	// since nobody answers.
	refused map[string]bool
}

// free tells why nothing can be mounted at dir.
func (h *holding) free(dir string) error {
	dir = filepath.Clean(dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.refused[dir] {
		return nil
	}
	if mountedHere(dir) {
		return fmt.Errorf("%w: %s has a mount that survived a server and cannot be taken over; ogw umount --lazy %s ends it", vfs.ErrBusy, dir, dir)
	}
	delete(h.refused, dir)
	return nil // the holder lets go of it when no server is connected
}

// refuse notes that a mount was not taken over.
func (h *holding) refuse(dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == nil {
		h.refused = make(map[string]bool)
	}
	h.refused[dir] = true
}

// heldMount implements fusemount.Holder for one mount, and those that share its
// superblock.
type heldMount struct {
	h     *holding
	mount admin.Mount
	log   *slog.Logger
}

// Hold implements fusemount.Holder. It starts the holder for the first mount.
func (m *heldMount) Hold(name string, device, memory int) error {
	meta, err := json.Marshal(m.mount)
	if err != nil {
		return err
	}
	item := holder.Item{Name: name, Meta: meta, Device: device, Memory: memory}
	if m.mount.Abandon != nil {
		item.Abandon = time.Duration(*m.mount.Abandon * float64(time.Second))
	}
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	if m.h.client == nil {
		if m.h.client, err = holder.Start(m.h.path); err != nil {
			return err
		}
	}
	if err = m.h.client.Put(item); err == nil || errors.Is(err, holder.ErrRefused) {
		return err
	}
	m.log.Warn("the holder is gone: mounts that it held end with this server", "error", err)
	_ = m.h.client.Close() // of no use any more
	if m.h.client, err = holder.Start(m.h.path); err != nil {
		return err
	}
	return m.h.client.Put(item)
}

// Drop implements fusemount.Holder.
func (m *heldMount) Drop(name string) {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	if m.h.client == nil {
		return
	}
	if err := m.h.client.Drop(name); err != nil {
		m.log.Warn("the holder keeps a mount that is gone", "dir", m.mount.Dir, "error", err)
	}
}

// list connects to the holder that the process before left, if there is one.
func (h *holding) list() ([]holder.Item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	client, err := holder.Dial(h.path)
	if errors.Is(err, holder.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	items, err := client.List()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	h.client = client
	return items, nil
}

// takeOver goes on with the mounts that the process before left to the holder.
// What cannot be taken over stays as it is, so that nothing is written into the
// folder below it.
func (t *mountTable) takeOver(ctx context.Context) {
	t.before = t.recorded()
	items, err := t.holding.list()
	if err != nil {
		t.log.Error("mounts that survived the server before cannot be taken over; their programs wait", "error", err)
	}
	for _, i := range items {
		var m admin.Mount
		err := json.Unmarshal(i.Meta, &m)
		var opt fusemount.Options
		if err == nil {
			opt, err = t.options(ctx, m)
		}
		if err != nil {
			i.Close()
		}
		var servers []*fusemount.Server
		if err == nil {
			opt.Holder = &heldMount{&t.holding, m, t.log}
			servers, err = t.set.TakeOver(opt, i.Device, i.Memory)
		}
		if err != nil {
			t.holding.refuse(m.Dir)
			t.log.Error("a mount that survived the server before cannot be taken over; its programs wait until the version and options before serve it, or ogw umount --lazy ends it", "dir", m.Dir, "error", err)
			continue
		}
		for _, s := range servers {
			if k := slices.IndexFunc(t.before, func(r admin.Mount) bool { return r.Dir == s.Dir() }); k >= 0 {
				m = t.before[k]
			}
			m.Dir = s.Dir()
			if err := t.enter(m, s); err != nil {
				t.log.Error("a mount is not listed", "dir", m.Dir, "error", err)
			}
			t.audit.mounted("Mount", m.Dir, m.Settings())
		}
	}
}
