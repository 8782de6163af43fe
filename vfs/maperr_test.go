package vfs

import (
	"errors"
	"fmt"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// An engine's error keeps its words, without those that the class repeats.
func TestMappedWords(t *testing.T) {
	for _, c := range []struct {
		from, to error
		want     string
	}{
		{cluster.ErrCorrupt, ErrCorrupt, "stored data is corrupt: here"},
		{cluster.ErrUnavailable, ErrUnavailable, "storage unavailable: here"},
		{cluster.ErrNotFound, ErrCorrupt, "stored data is corrupt: blob not found: here"},
		{cluster.ErrReadOnly, ErrReadOnly, "file system is read-only: cluster is read-only: here"},
	} {
		err := fserr.Map(fmt.Errorf("%w: here", c.from))
		if !errors.Is(err, c.from) || !errors.Is(err, c.to) || err.Error() != c.want {
			t.Errorf("%v: %v, want %q", c.from, err, c.want)
		}
		if again := fserr.Map(err); again.Error() != c.want {
			t.Errorf("mapped again: %v", again)
		}
	}
}
