package mounts

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"ogw/cmd/ogw/privatefile"
	"ogw/fusemount"
	"ogw/httpapi/admin"
)

// RecordName is the file in the data folder that lists the mounts of the
// process, so that the next one can mend what a crash left.
const RecordName = "mounts.json"

// save writes the record; t.mu is held. It needs no fsync: a power cut ends
// the mounts too.
func (t *Table) save() {
	list := []admin.Mount{}
	for _, m := range t.list {
		list = append(list, m.info)
	}
	for _, m := range t.before {
		if m.Survive && t.holding.waiting(m.Dir) != nil { // for a server that can serve it
			list = append(list, m)
		}
	}
	err := os.Remove(t.record)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if len(list) > 0 {
		var b []byte
		if b, err = json.Marshal(list); err == nil {
			err = privatefile.Replace(t.record, b, false)
		}
	}
	if err != nil {
		t.Log.Warn("mounts are not recorded: after a crash they would not come back", "error", err)
	}
}

// Restore mounts again what a process that crashed had mounted, where its
// dead mount still stands; except the one that is about to be mounted anyway.
func (t *Table) Restore(ctx context.Context, except string) {
	if t.before == nil {
		return // the usual case: nothing is left
	}
	for _, m := range t.before {
		if m.Dir == except || m.Survive && t.stays(m.Dir) || !fusemount.IsMount(m.Dir) || !fusemount.IsDead(m.Dir) {
			continue
		}
		if err := t.Add(ctx, m); err != nil {
			t.Log.Error("a mount from before the crash cannot be made again", "dir", m.Dir, "error", err)
			continue
		}
		t.Log.Info("mounted again after a crash", "dir", m.Dir)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.save()
}

// stays tells whether a mount that survives is there: served, or waiting for a
// server. If neither, the process that held it is gone, and the mount is dead.
func (t *Table) stays(dir string) bool {
	return t.find(dir) != nil || t.holding.waiting(dir) != nil || !t.holding.known()
}

// recorded returns the mounts of the process before.
func (t *Table) recorded() (list []admin.Mount) {
	b, err := os.ReadFile(t.record)
	if err != nil {
		return nil // the usual case: it had none
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Log.Warn("the record of mounts cannot be read", "file", t.record, "error", err)
	}
	return list
}
