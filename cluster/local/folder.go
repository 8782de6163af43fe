package local

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

// OpenFolder makes and locks the data folder of a process whose store is
// elsewhere, as Open does for its own. It returns ErrLocked if another process
// has it, and ErrFormat for one that holds a store of this engine.
func OpenFolder(dir string, networkFS bool, log *slog.Logger) (io.Closer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir, &Options{Logger: log}); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	if _, err = os.Lstat(filepath.Join(dir, record.FormatFile)); err == nil {
		err = fmt.Errorf("%w: folder %s holds a store of the embedded engine", cluster.ErrFormat, dir)
	} else if errors.Is(err, os.ErrNotExist) {
		err = checkFileSystem(dir, statfsType, networkFS, log)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
