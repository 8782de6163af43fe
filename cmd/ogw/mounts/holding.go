package mounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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
	path   string          // of the socket
	ending context.Context // done when what is held is left to the next process
	close  func()          // ends it

	mu     sync.Mutex
	client *holder.Client // nil: nothing is held
	count  int            // of holders so far; several connections may have been to one
	// refused are mounts that were not taken over: nothing may look at them,
	// since nobody answers.
	refused map[string]*fusemount.Refused
}

// free returns why nothing can be mounted at dir.
func (h *holding) free(dir string) error {
	if h.waiting(dir) == nil {
		return nil
	}
	return fmt.Errorf("%w: %s has a mount that survived a server and is not served here; ogw umount --lazy %s ends it", vfs.ErrBusy, dir, dir)
}

// waiting returns the mount at dir that is not served, nil if there is none.
func (h *holding) waiting(dir string) *fusemount.Refused {
	dir = filepath.Clean(dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.refused[dir]
	if r == nil {
		return nil
	}
	select {
	case <-r.Gone():
	default:
		if fusemount.IsMount(dir) {
			return r
		}
	}
	delete(h.refused, dir)
	return nil
}

// refuse notes that a mount was not taken over.
func (h *holding) refuse(dir string, r *fusemount.Refused) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == nil {
		h.refused = make(map[string]*fusemount.Refused)
	}
	h.refused[dir] = r
}

// heldMount implements fusemount.Holder for one mount, and those that share its
// superblock.
type heldMount struct {
	h    *holding
	item holder.Item // without name and descriptors
	log  *slog.Logger
	set  *fusemount.Mounts
}

// held is what has a mount that is asked for held.
func (t *Table) held(m admin.Mount) (*heldMount, error) {
	meta, err := json.Marshal(m)
	item := holder.Item{Meta: meta}
	if m.Abandon != nil {
		item.Abandon = time.Duration(*m.Abandon * float64(time.Second))
	}
	return &heldMount{&t.holding, item, t.Log, t.set}, err
}

// Hold implements fusemount.Holder. It starts the holder for the first mount.
func (m *heldMount) Hold(name string, device, memory int) error {
	item := m.item
	item.Name, item.Device, item.Memory = name, device, memory
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	late := false // the holder has what was put before, and is alive
	if m.h.client != nil {
		err := m.h.client.Put(item)
		if err == nil || errors.Is(err, holder.ErrRefused) && !errors.Is(err, holder.ErrHung) {
			return err
		}
		late = errors.Is(err, holder.ErrHung)
		_ = m.h.client.Close() // of no use any more
		m.h.client = nil
	}
	client, err := holder.Start(m.h.path)
	if err != nil {
		return err
	}
	m.h.client = client
	if !late || client.Fresh() {
		m.h.count++
	}
	m.h.watch(m.log, m.set)
	return client.Put(item)
}

// watch gives what the holder had to another one, should it die. h.mu is held, or
// h is not in use yet.
func (h *holding) watch(log *slog.Logger, set *fusemount.Mounts) {
	c, count := h.client, h.count
	ended, err := c.Ended()
	if err != nil {
		log.Warn("it is not seen at once if the process that holds mounts dies", "error", err)
		return
	}
	go func() {
		<-ended
		if h.ending.Err() != nil || h.replaced(c, count) {
			return
		}
		log.Warn("the process that held mounts is gone, or does not answer: they are held anew")
		h.holdAgain(log, set)
	}()
}

// replaced reports whether another connection to the same holder took the place of c, which
// was the count-th one's.
func (h *holding) replaced(c *holder.Client, count int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client != nil && h.client != c && h.count == count
}

// The pause between two tries of holdAgain doubles from the one to the other.
const (
	holdPause    = 100 * time.Millisecond
	maxHoldPause = time.Minute
)

// holdAgain has mounts held until that succeeds: a new process may need what the
// machine is short of.
func (h *holding) holdAgain(log *slog.Logger, set *fusemount.Mounts) {
	for pause := holdPause; ; pause = min(2*pause, maxHoldPause) {
		err := set.HoldAgain()
		if err == nil {
			log.Info("mounts are held again")
			return
		}
		log.Error("mounts are held by nobody: if this server ends, they do", "error", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-h.ending.Done():
			return
		}
	}
}

// Drop implements fusemount.Holder.
func (m *heldMount) Drop(name string) {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	if m.h.client == nil {
		return
	}
	if err := m.h.client.Drop(name); err != nil {
		m.log.Warn("the holder keeps a mount that is gone", "name", name, "error", err)
	}
}

// list connects to the holder that the process before left, if there is one. After an
// error it is not known what programs have open.
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
// folder below it. After an error the store must not be used: removed files that
// programs have open would be collected.
func (t *Table) takeOver(ctx context.Context) error {
	items, err := t.holding.list()
	if err != nil {
		return fmt.Errorf("which mounts survived the server before is not known: %w; start again when the server before has ended and the process hold-mounts answers, or kill that, which ends them", err)
	}
	var left []fusemount.Left
	metas := make([]admin.Mount, len(items))
	for k, i := range items {
		left = append(left, t.leftOf(ctx, &i, &metas[k]))
	}
	list, err := t.set.TakeOver(left)
	if err != nil {
		return errors.Join(fmt.Errorf("mounts that survived the server before: %w", err), t.holding.client.Close())
	}
	for k, taken := range list {
		if taken.Refused != nil {
			t.refused(&metas[k], taken.Refused)
			continue
		}
		for _, s := range taken.Servers {
			t.goOn(metas[k], s)
		}
	}
	if t.holding.client != nil {
		t.holding.watch(t.Log, t.set)
	}
	return nil
}

// leftOf is what fusemount needs to go on with an item; m becomes what its first
// mount was asked for.
func (t *Table) leftOf(ctx context.Context, i *holder.Item, m *admin.Mount) fusemount.Left {
	l := fusemount.Left{Name: i.Name, Device: i.Device, Memory: i.Memory}
	if l.Err = json.Unmarshal(i.Meta, m); l.Err == nil {
		whole := *m
		whole.Subtree = "" // the memory knows the root, whatever its path is by now
		l.Options, l.Err = t.options(ctx, whole)
	}
	// As it is: another version may know more of it.
	l.Options.Holder = &heldMount{&t.holding, holder.Item{Meta: i.Meta, Abandon: i.Abandon}, t.Log, t.set}
	l.Dirs = t.recordedDirs()
	return l
}

// goOn lists a mount that was taken over.
func (t *Table) goOn(m admin.Mount, s *fusemount.Server) {
	if r := t.recorded(s.Dir()); r != nil {
		m = r.Mount
	}
	m.Dir = s.Dir()
	m.Returns = m.Returns || t.Returns // the record of an older version does not say
	if err := t.enter(m, s); err != nil {
		t.Log.Error("a mount is not listed", "dir", m.Dir, "error", err)
	}
	t.markReturned(m.Dir)
	t.Audit("Mount", m.Dir, m.Settings())
}

// refused records and logs that a superblock is not served, with all its mounts.
func (t *Table) refused(m *admin.Mount, r *fusemount.Refused) {
	dirs := r.Dirs
	if len(dirs) == 0 {
		dirs = []string{m.Dir}
	}
	for _, dir := range dirs {
		t.holding.refuse(dir, r)
		t.Log.Error("a mount that survived the server before is not served here: its programs wait for a server of the version and options before, "+
			"which finds their files and locks as they left them; ogw umount --lazy ends it, and gives them errors", "dir", dir, "error", r.Err)
	}
}
