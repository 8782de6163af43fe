// Package checksum knows the checksums that S3 gives to objects and parts: their
// names, how they are computed, and which of them follow for a whole from those of
// its pieces. It knows nothing of files.
package checksum
