package vfs

import (
	"fmt"

	"ogw/vfs/internal/record"
)

// wayUp notices that the way from a directory to the root goes round in
// circles, which only damaged records do: it remembers one inode, the next
// time after twice as many steps (Brent's algorithm).
type wayUp struct {
	mark        record.Ino
	steps, next int
}

// pass fails if the way has come by ino before.
func (w *wayUp) pass(ino record.Ino) error {
	if ino == w.mark {
		return fmt.Errorf("%w: directory %d is below itself", ErrCorrupt, ino)
	}
	if w.steps++; w.steps > w.next {
		w.mark, w.steps, w.next = ino, 0, 2*w.next+1
	}
	return nil
}
