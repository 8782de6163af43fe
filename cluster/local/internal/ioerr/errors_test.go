package ioerr

import (
	"errors"
	"os"
	"strings"
	"testing"

	"ogw/cluster"

	"golang.org/x/sys/unix"
)

// A lack of permission and a read-only medium are one class, in other words.
func TestReadOnlyWords(t *testing.T) {
	for errno, say := range map[unix.Errno]string{
		unix.EROFS: "cluster is read-only: ", unix.EACCES: "no permission to use the files of the cluster: ", unix.EPERM: "no permission",
	} {
		err := Map(&os.PathError{Op: "open", Path: "LOCK", Err: errno})
		if !errors.Is(err, cluster.ErrReadOnly) || !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), say) {
			t.Errorf("%v: %v", errno, err)
		}
		if again := Map(err); again.Error() != err.Error() {
			t.Errorf("%v: mapped again: %v", errno, again)
		}
	}
}
