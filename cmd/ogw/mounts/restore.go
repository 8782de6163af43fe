package mounts

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// save writes the record; t.mu is held.
func (t *Table) save() { t.record.write(t.entries()) }

// entries is what the record has to say; t.mu is held.
func (t *Table) entries() []entry {
	list := []entry{}
	for _, m := range t.list {
		if !m.removed && (!t.closed || m.Returns || m.server.Left()) {
			list = append(list, m.entry)
		}
	}
	return append(list, t.absent...)
}

// dropAbsent takes dir out of what is absent; t.mu is held.
func (t *Table) dropAbsent(dir string) (found bool) {
	before := len(t.absent)
	t.absent = slices.DeleteFunc(t.absent, func(e entry) bool { return e.Dir == dir })
	return len(t.absent) < before
}

// recorded returns what the record says of a mount that is not served yet.
func (t *Table) recorded(dir string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.absent, func(e entry) bool { return e.Dir == dir }); i >= 0 {
		e := t.absent[i]
		return &e
	}
	return nil
}

// recordedDirs returns where mounts that survive were; nil without a record.
func (t *Table) recordedDirs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.absent == nil {
		return nil
	}
	dirs := []string{}
	for _, e := range t.absent {
		if e.Survive {
			dirs = append(dirs, e.Dir)
		}
	}
	return dirs
}

// strike takes a mount that has ended out of the record. vfs.ErrClosed if another
// process may have that by now.
func (t *Table) strike(dir string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.record.open {
		return vfs.ErrClosed
	}
	for _, m := range t.list {
		m.removed = m.removed || m.Dir == dir
	}
	t.dropAbsent(dir)
	t.save()
	return nil
}

// ended is strike for a mount of this process. That may have closed the record by then,
// since it ends with its last mount: nothing is wrong if it left this one out.
func (t *Table) ended(dir string) error {
	err := t.strike(dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && !slices.ContainsFunc(t.entries(), func(e entry) bool { return e.Dir == dir }) {
		return nil
	}
	return err
}

// removeAbsent is Remove of what is not served. What another process has mounted
// at the place is not ours to end.
func (t *Table) removeAbsent(dir string) error {
	known := t.recorded(dir) != nil
	if err := t.strike(dir); err != nil {
		return err
	}
	if !known || fusemount.IsMount(dir) {
		return fmt.Errorf("%w: this process has no mount at %s", vfs.ErrNotExist, dir)
	}
	return nil
}

// Missing returns the mounts that should be served, and are not.
func (t *Table) Missing() []admin.Mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []admin.Mount{}
	for _, e := range t.absent {
		info := e.Mount
		switch r := t.holding.waiting(e.Dir); {
		case r != nil:
			info.Missing = fmt.Sprintf("its programs wait for a server that can serve it: %v", r.Err)
		case e.why != nil:
			info.Missing = e.why.Error()
		default:
			info.Missing = "the next server mounts it"
		}
		out = append(out, info)
	}
	return out
}

// Restore mounts again what the process before had mounted: what it left dead when
// it crashed and, if this process is a server, what it unmounted when it stopped,
// or what ended with the machine. except is about to be mounted anyway.
func (t *Table) Restore(ctx context.Context, except string) {
	t.restoring.Lock()
	defer t.restoring.Unlock()
	t.mu.Lock()
	list := slices.Clone(t.absent)
	t.mu.Unlock()
	// One that is inside of another comes after it.
	slices.SortStableFunc(list, func(a, b entry) int { return strings.Compare(a.Dir, b.Dir) })
	for _, e := range list {
		if e.Dir == except {
			continue
		}
		switch t.fateOf(&e) {
		case fateAgain:
			t.again(ctx, &e)
		case fateDropped:
			t.mu.Lock()
			t.dropAbsent(e.Dir)
			t.mu.Unlock()
		case fateKept:
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.save()
}

// fate is what Restore does with a mount.
type fate int

const (
	fateAgain   fate = iota
	fateDropped      // nobody wants it any more
	fateKept         // it is another's: of a later server, or of one that can serve it
)

func (t *Table) fateOf(e *entry) fate {
	mounted := fusemount.IsMount(e.Dir)
	switch {
	case e.Survive && t.stays(e.Dir):
		return fateKept
	case mounted && fusemount.IsDead(e.Dir):
		return fateAgain
	case !e.Returns:
		return fateDropped
	case !t.Returns:
		return fateKept
	case !mounted && !e.Stopped && e.Place == place():
		t.Log.Info("a mount is not made again: it was unmounted while no server ran", "dir", e.Dir)
		return fateDropped
	}
	return fateAgain
}

// again makes a mount of the process before. What programs wrote into the folder
// while it was bare must not keep it so.
func (t *Table) again(ctx context.Context, e *entry) {
	if hasEntries(e.Dir) && !e.NonEmpty {
		t.Log.Warn("a mount is made again over entries, which it hides: programs may have made them while it was away", "dir", e.Dir)
	}
	err := t.add(ctx, e.Mount, true)
	if err == nil {
		t.markReturned(e.Dir)
		t.Log.Info("mounted again", "dir", e.Dir)
		return
	}
	t.Log.Error("a mount cannot be made again: programs use the folder below it", "dir", e.Dir, "error", err)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.absent {
		if t.absent[i].Dir == e.Dir {
			t.absent[i].why = err
		}
	}
}

// markReturned notes that the mount at dir is one of the process before.
func (t *Table) markReturned(dir string) {
	if m := t.find(dir); m != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		m.returned = true
	}
}

// adopt reports whether m is a mount that came back, and was not asked for since.
func (t *Table) adopt(m admin.Mount) bool {
	e, dir := t.at(m.Dir)
	if e == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m.Dir, m.NonEmpty, m.Returns = dir, e.NonEmpty, e.Returns
	if !e.returned || !reflect.DeepEqual(m, e.Mount) {
		return false
	}
	e.returned = false
	return true
}

func hasEntries(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	return err == nil && len(names) > 0
}

// stays reports whether a mount that survives is there: served, or waiting for a
// server. If neither, the process that held it is gone, and the mount is dead.
func (t *Table) stays(dir string) bool {
	return t.find(dir) != nil || t.holding.waiting(dir) != nil
}
