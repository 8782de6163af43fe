package record

import (
	"fmt"
	"path/filepath"

	"ogw/cluster"
)

// What lies in the data folder; doc.go says what it is.
const (
	FormatFile  = "FORMAT"
	LockFile    = "LOCK"
	MarkFile    = "MARK"
	ReserveFile = "reserve"
	TailFile    = "tail"
	MetaDir     = "meta"
	SegmentDir  = "segments"
	BlobDir     = "blobs"
)

// BlobFanOut is the number of folders of blob files.
const BlobFanOut = 256

// BlobFolder returns the path of the folder i of blob files, from the data folder.
func BlobFolder(i int) string { return filepath.Join(BlobDir, fmt.Sprintf("%02x", i)) }

// BlobFile returns the path of a blob with a file of its own, from the data folder.
func BlobFile(id cluster.BlobID) string {
	return filepath.Join(BlobFolder(int(byte(id.Content+id.Seq))), id.String())
}
