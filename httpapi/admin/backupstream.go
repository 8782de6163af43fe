package admin

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
)

// A backup's data go as a stream of records: a kind, and what stands below.
// Numbers are uvarints, strings a length and bytes. A stream without an end
// broke off.
const (
	streamPair  = 'p' // key, value
	streamBlob  = 'b' // blob ID (16 bytes), size, CRC (8 bytes)
	streamData  = 'd' // bytes of the blob that was asked for next
	streamDone  = 'o' // the end of that blob, which is whole
	streamSkip  = 's' // the end of that blob, which cannot be read: why
	streamGone  = 'g' // the end of that blob, which no file has
	streamEnd   = 'e' // a JSON document: pairsEnd, or {}
	streamError = 'x' // the end: why
)

const (
	// streamBufferBytes is written at a time.
	streamBufferBytes = 256 << 10
	// maxStreamString bounds a string of a stream: a value, or the data of one
	// record.
	maxStreamString = cluster.MaxValueBytes + 1
)

// streamWriter writes records.
type streamWriter struct {
	*bufio.Writer
	num [binary.MaxVarintLen64]byte
}

func (w *streamWriter) record(kind byte, parts ...[]byte) error {
	_ = w.WriteByte(kind) // an error stays, and the last write returns it
	var err error
	for _, p := range parts {
		_, _ = w.Write(binary.AppendUvarint(w.num[:0], uint64(len(p))))
		_, err = w.Write(p)
	}
	return err
}

// errBroken means that a stream has no end.
var errBroken = errors.New("the process that serves the store ended the transfer")

// streamReader reads records.
type streamReader struct {
	*bufio.Reader
	body io.Closer
}

func (r *streamReader) close() { _ = r.body.Close() }

func (r *streamReader) bytes() ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > maxStreamString {
		return nil, fmt.Errorf("a record of %d bytes", n)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// next returns the kind of the next record; the error of a record that carries one.
func (r *streamReader) next() (byte, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBroken, err)
	}
	if kind == streamError {
		why, err := r.bytes()
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errBroken, err)
		}
		return 0, errors.New(string(why))
	}
	return kind, nil
}
