package fusemount

import "ogw/fusemount/notifier"

// A connection is the superblock of its rawFS.

func (c *connection) number() string { return c.device }

func (c *connection) several() bool { return c.set.several.Load() }

func (c *connection) others() (list []*rawFS) {
	for _, o := range c.set.others(c) {
		list = append(list, o.raw)
	}
	return list
}

func (c *connection) sameSet(o superblock) bool {
	x, ok := o.(*connection)
	return ok && x.set == c.set
}

// apart returns what makes the kernel ask for sizes in another process; nil where
// this one does.
func (c *connection) apart() func(*notifier.Size) (known bool, err error) {
	if !c.survives() {
		return nil
	}
	return c.loop.apart.tellSize
}
