package metafs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"strings"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble panics when it meets a file of values that is missing, or whose end
// is damaged, while others are only errors to it. So these are found out here,
// before it does.

const (
	valueSuffix      = ".blob"
	valueFooterBytes = 38
	valueMagic       = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
	// crcMask and crcTurn are how Pebble disguises a CRC within data.
	crcMask = 0xa282ead8
	crcTurn = 17
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open implements vfs.FS.
func (g *RollbackGuard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fileio.Open(g.relieve, func() (vfs.File, error) { return g.FS.Open(name, opts...) })
	if !strings.HasSuffix(name, valueSuffix) {
		return f, err
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: file %s is missing", cluster.ErrCorrupt, name)
	}
	if err != nil {
		return nil, err
	}
	if err := checkValueFooter(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	return f, nil
}

// checkValueFooter verifies the end of a file of values: checksum (4), place of
// the index (16), two bytes of format, file number (8), magic.
func checkValueFooter(f vfs.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < valueFooterBytes {
		return fmt.Errorf("%w: it is cut short", cluster.ErrCorrupt)
	}
	var b [valueFooterBytes]byte
	if _, err := f.ReadAt(b[:], info.Size()-valueFooterBytes); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	sum := bits.RotateLeft32(crc32.Checksum(b[4:], castagnoli), crcTurn) + crcMask
	if sum != binary.LittleEndian.Uint32(b[:]) || string(b[valueFooterBytes-len(valueMagic):]) != valueMagic {
		return fmt.Errorf("%w: its end is damaged", cluster.ErrCorrupt)
	}
	return nil
}
