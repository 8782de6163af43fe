package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatMaxBytes bounds what is read of a FORMAT file.
const formatMaxBytes = 4096

// ensureFormat reads the FORMAT file of dir, or writes one when the folder is
// fresh.
func ensureFormat(fs vfs.FS, dir string) (record.StoreID, error) {
	id, err := findFormat(fs, dir)
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	if err := checkFresh(fs, dir); err != nil {
		return id, err
	}
	if _, err := rand.Read(id[:]); err != nil {
		return id, err
	}
	return id, writeFormat(fs, dir, id)
}

// findFormat is readFormat, which tells a store that lost the file from none:
// os.ErrNotExist is the latter.
func findFormat(fs vfs.FS, dir string) (record.StoreID, error) {
	id, err := readFormat(fs, dir)
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	for _, name := range []string{record.MetaDir, record.SegmentDir, record.BlobDir} {
		if _, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			return id, fmt.Errorf("%w: folder %s holds %s but no %s file", cluster.ErrFormat, dir, name, record.FormatFile)
		}
	}
	return id, err
}

// checkFresh refuses folders that hold something else, such as a home
// directory: plain files (a configuration, a socket) are welcome, folders not.
func checkFresh(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return ioerr.Map(err)
	}
	for _, name := range names {
		if name == "lost+found" {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil && info.IsDir() {
			return fmt.Errorf("%w: folder %s is not an ogw store: it holds the folder %q and no %s file",
				cluster.ErrFormat, dir, name, record.FormatFile)
		}
	}
	return nil
}

func readFormat(fs vfs.FS, dir string) (record.StoreID, error) {
	f, err := fs.Open(fs.PathJoin(dir, record.FormatFile))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return record.StoreID{}, err
		}
		return record.StoreID{}, ioerr.Map(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, formatMaxBytes))
	if err != nil {
		return record.StoreID{}, ioerr.Map(err)
	}
	id, err := record.ParseFormat(data)
	if err != nil {
		return id, fmt.Errorf("%w (file %s)", err, fs.PathJoin(dir, record.FormatFile))
	}
	return id, nil
}

func writeFormat(fs vfs.FS, dir string, id record.StoreID) error {
	return fileio.Replace(fs, dir, record.FormatFile, record.EncodeFormat(id))
}
