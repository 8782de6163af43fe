package record

import (
	"encoding/hex"
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
	EnteredFile = "GATEWAYS"
	MetaDir     = "meta"
	SegmentDir  = "segments"
	BlobDir     = "blobs"
)

// BlobFanOut is the number of folders of blob files.
const BlobFanOut = 256

// BlobFolder returns the folder i of blob files, in the data folder dir.
func BlobFolder(dir string, i int) string {
	return filepath.Join(dir, BlobDir, hex.EncodeToString([]byte{byte(i)}))
}

// BlobFile returns the file of a blob that has one of its own, in the data folder
// dir. Every read of such a blob asks for it.
func BlobFile(dir string, id cluster.BlobID) string {
	const digits = "0123456789abcdef"
	i := byte(id.Content + id.Seq)
	return dir + "/" + BlobDir + "/" + digits[i>>4:i>>4+1] + digits[i&15:i&15+1] + "/" + id.String()
}
