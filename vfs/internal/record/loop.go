package record

import (
	"fmt"

	"ogw/vfs/internal/fserr"
)

// LoopDetector notices that the way from a directory to the root goes round in
// circles, which only damaged records do: it remembers one inode, the next
// time after twice as many steps (Brent's algorithm).
type LoopDetector struct {
	mark        Ino
	steps, next int
}

// Visit fails if the way has come by ino before.
func (l *LoopDetector) Visit(ino Ino) error {
	if ino == l.mark {
		return fmt.Errorf("%w: directory %d is below itself", fserr.ErrCorrupt, ino)
	}
	if l.steps++; l.steps > l.next {
		l.mark, l.steps, l.next = ino, 0, 2*l.next+1
	}
	return nil
}
