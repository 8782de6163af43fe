package local

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// formatVersion is the layout of the whole folder that this code writes.
	// docs/format.md describes it.
	formatVersion = 1
	formatMagic   = "ogw embedded store"
	// formatMaxBytes bounds what is read of a FORMAT file.
	formatMaxBytes = 4096
	storeIDBytes   = 16
)

// storeID tells one store from every other.
type storeID [storeIDBytes]byte

func (id storeID) String() string { return hex.EncodeToString(id[:]) }

// ensureFormat reads the FORMAT file of dir, or writes one when the folder is
// fresh.
func ensureFormat(fs vfs.FS, dir string) (storeID, error) {
	id, err := readFormat(fs, dir)
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	for _, name := range []string{metaDir, segmentDir, blobDir} {
		if _, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			return id, fmt.Errorf("%w: folder %s holds %s but no %s file", cluster.ErrFormat, dir, name, formatFile)
		}
	}
	if err := checkFresh(fs, dir); err != nil {
		return id, err
	}
	if _, err := rand.Read(id[:]); err != nil {
		return id, err
	}
	return id, writeFormat(fs, dir, id)
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
				cluster.ErrFormat, dir, name, formatFile)
		}
	}
	return nil
}

func readFormat(fs vfs.FS, dir string) (storeID, error) {
	f, err := fs.Open(fs.PathJoin(dir, formatFile))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return storeID{}, err
		}
		return storeID{}, ioerr.Map(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, formatMaxBytes))
	if err != nil {
		return storeID{}, ioerr.Map(err)
	}
	id, err := parseFormat(data)
	if err != nil {
		return id, fmt.Errorf("%w (file %s)", err, fs.PathJoin(dir, formatFile))
	}
	return id, nil
}

// parseFormat decodes what encodeFormat wrote.
func parseFormat(data []byte) (id storeID, err error) {
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) < 4 || string(lines[0]) != formatMagic {
		return id, fmt.Errorf("%w: not an ogw store", cluster.ErrFormat)
	}
	text, ok := bytes.CutPrefix(lines[1], []byte("version "))
	version, err := strconv.Atoi(string(text))
	if !ok || err != nil || version < 1 {
		return id, fmt.Errorf("%w: the version line is damaged", cluster.ErrFormat)
	}
	if version > formatVersion {
		return id, fmt.Errorf("%w: written by a newer ogw (format %d, this one knows up to %d)", cluster.ErrFormat, version, formatVersion)
	}
	text, ok = bytes.CutPrefix(lines[2], []byte("id "))
	if !ok || hex.DecodedLen(len(text)) != storeIDBytes || len(text) != 2*storeIDBytes {
		return id, fmt.Errorf("%w: the store ID is damaged", cluster.ErrFormat)
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return storeID{}, fmt.Errorf("%w: the store ID is damaged", cluster.ErrFormat)
	}
	return id, nil
}

func encodeFormat(id storeID) []byte {
	return fmt.Appendf(nil, "%s\nversion %d\nid %s\n", formatMagic, formatVersion, id)
}

func writeFormat(fs vfs.FS, dir string, id storeID) error {
	return fileio.Replace(fs, dir, formatFile, encodeFormat(id))
}
