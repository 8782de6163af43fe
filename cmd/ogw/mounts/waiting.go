package mounts

import (
	"errors"
	"path/filepath"

	"ogw/fusemount/holder"
)

// Wait reports whether mounts of a data folder that no process serves wait for one that
// does, with what programs wrote and have not synced.
func Wait(folder string) (bool, error) {
	c, err := holder.Dial(filepath.Join(folder, holderSocket))
	if errors.Is(err, holder.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, c.Close()
}
