package local

// What lies in the data folder; doc.go says what it is.
const (
	formatFile      = "FORMAT"
	lockFile        = "LOCK"
	markFile        = "MARK"
	reserveFileName = "reserve"
	tailFile        = "tail"
	metaDir         = "meta"
	segmentDir      = "segments"
	blobDir         = "blobs"
)
