// Package record is how the embedded engine's files and keys are laid out: each
// layout in the comment beside its codec, and nothing else knows how bytes lie.
// docs/format.md shows them byte for byte, which TestFormatDocument compares.
//
//	folder.go       names in the data folder
//	format.go       FORMAT: version and store ID
//	mark.go         MARK: what the metadata were a short while ago
//	tail.go         tail: commits of the last moment
//	entered.go      GATEWAYS: who had a data folder whose store is elsewhere
//	segmentname.go  names of segments
//	record.go       a stored blob, in a segment or in a file of its own
//	keys.go         the engine's own keys, beside the metadata
//	place.go        where a blob is: the value of its key
//
// Decoders take any bytes: what is not whole, or does not carry its checksum, is
// refused.
package record
