package fusemount

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ogw/fusemount/ledger"
)

// Departure is a superblock that LeaveAll left to the next server.
type Departure struct {
	// Dirs are its mounts; none, if it is out of the tree while programs, or
	// other mount namespaces, still have it.
	Dirs []string
}

// LeaveAll stops serving all superblocks that survive, for the next server to
// take over. Programs that use them wait from now on. One that its Holder does
// not have, and does not take again, is served on.
func (m *Mounts) LeaveAll() (all []Departure) {
	m.mu.Lock()
	list, refused := slices.Clone(m.list), slices.Clone(m.refused)
	m.mu.Unlock()
	for _, r := range refused {
		if err := r.hold(); err != nil {
			r.log.Error("a mount that is not served cannot be left to the next server either, and ends with this one", "dirs", r.Dirs, "err", err)
		}
	}
	before := len(list)
	list = slices.DeleteFunc(list, func(c *connection) bool { return !c.held() })
	others := len(list) < before // they may change things when nobody is notified any more
	left := make([]bool, len(list))
	complete := make([]bool, len(list))
	each := func(fn func(i int, c *connection)) {
		var wait sync.WaitGroup
		for i, c := range list {
			wait.Go(func() { fn(i, c) })
		}
		wait.Wait()
	}
	each(func(i int, c *connection) { left[i], complete[i] = c.loop.leave() })
	// The others and one another are notified of what they changed last before
	// anybody stops to listen.
	each(func(i int, c *connection) { complete[i] = left[i] && c.raw.inv.drain() && complete[i] })
	m.fs.Forget() // nobody waits for who has left
	for i, c := range list {
		if !left[i] {
			continue // gone meanwhile
		}
		c.cancel()
		c.raw.inv.close()
		c.raw.sizes.close()
		c.raw.listings.close()
		c.raw.surv.book.SetClean(complete[i] && !others)
		all = append(all, Departure{Dirs: c.dirs()})
	}
	return all
}

// held reports whether the Holder has a superblock that survives, and gives it
// again.
func (c *connection) held() bool {
	err := c.hold()
	if err != nil {
		c.raw.opt.Logger.Error("a mount cannot be left to the next server, and ends with this one", "dirs", c.dirs(), "err", err)
	}
	return err == nil && c.raw.surv != nil
}

// hold gives the superblock to its Holder, if it survives and is not gone.
func (c *connection) hold() (err error) {
	c.raw.surv.withBook(func(b *ledger.Ledger) {
		err = c.raw.opt.Holder.Hold(mountName(b.Mount()), c.fd, b.FD())
	})
	return err
}

// HoldAgain gives all superblocks that survive to their Holders again, because
// those lost them, also those that are not served. The error names which are held
// by nobody: they end with this process.
func (m *Mounts) HoldAgain() (err error) {
	m.mu.Lock()
	list, refused := slices.Clone(m.list), slices.Clone(m.refused)
	m.mu.Unlock()
	for _, c := range list {
		if e := c.hold(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", strings.Join(c.dirs(), ", "), e))
		}
	}
	for _, r := range refused {
		if e := r.hold(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", strings.Join(r.Dirs, ", "), e))
		}
	}
	return err
}

// Left reports whether the mount was left to the next server.
func (s *Server) Left() bool { return s.conn.survives() && s.conn.loop.fate.Load() == fateLeft }
