package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// lockFolder takes the exclusive lock of dir, which ends with the process at
// the latest. The file names the holder, for people.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, record.LockFile)
	f, err := fileio.OpenPrivate(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, ioerr.Map(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, ioerr.Map(err))
		}
		holder := "unknown"
		buf := make([]byte, 32)
		if n, _ := f.ReadAt(buf, 0); n > 0 {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err == nil {
				holder = strconv.Itoa(pid)
			}
		}
		return nil, fmt.Errorf("%w: folder %s, process %s", cluster.ErrLocked, dir, holder)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // only a hint for people
	}
	return f, nil
}
