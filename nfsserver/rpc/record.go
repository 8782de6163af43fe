package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	lastFragment = 1 << 31
	// maxFragments bounds how many fragments one record may come in. Clients
	// send one; more than a few only cost time.
	maxFragments = 64
	// paceChunk is how often progress is looked at.
	paceChunk = 64 << 10
	// smallRecord is the longest that is looked at before it is taken, mark
	// included: a call of one handle with the longest credential.
	smallRecord = 1 << 10
)

var (
	// ErrRecordTooLong: a record is over the limit. The stream cannot be
	// used any further.
	ErrRecordTooLong = errors.New("rpc: record too long")
	// ErrFragments: a record in too many fragments.
	ErrFragments = errors.New("rpc: too many fragments in one record")
)

// recordReader reassembles records from their fragments (RFC 5531 section 11).
type recordReader struct {
	br  *bufio.Reader
	max int // longest record, in bytes
	// reserve is called before n more bytes of a record are taken into
	// memory; an error ends the connection.
	reserve func(n int) error
	// wait is called before a read that may block; started reports whether a
	// part of a record has arrived already, got how much of it.
	wait func(started bool, got int) error
	got  int // bytes of the current record
}

// next returns the next record. It returns io.EOF at a clean end, and
// io.ErrUnexpectedEOF within a record.
func (r *recordReader) next() (rec *Buffer, err error) {
	r.got = 0
	for n := 0; n < maxFragments; n++ {
		var last bool
		rec, last, err = r.fragment(rec)
		if err != nil {
			rec.Free()
			return nil, err
		}
		if last {
			return rec, nil
		}
	}
	rec.Free()
	return nil, ErrFragments
}

// fragment appends one fragment to rec and reports whether it is the last.
func (r *recordReader) fragment(rec *Buffer) (*Buffer, bool, error) {
	have := 0
	if rec != nil {
		have = len(rec.B)
	}
	mark, err := r.mark(rec != nil)
	if err != nil {
		return rec, false, err
	}
	length := int(mark &^ lastFragment)
	if length > r.max-have {
		return rec, false, fmt.Errorf("%w: more than %d bytes", ErrRecordTooLong, r.max)
	}
	if err := r.reserve(length); err != nil {
		return rec, false, err
	}
	rec = grow(rec, have+length)
	return rec, mark&lastFragment != 0, r.fill(rec.B[have:])
}

// peek returns the next record if it is a small one in one fragment, without
// taking it, and else nil. It is valid until the reader is used again.
func (r *recordReader) peek() ([]byte, error) {
	p, err := r.head(false)
	if err != nil {
		return nil, err
	}
	mark := binary.BigEndian.Uint32(p)
	n := 4 + int(mark&^lastFragment)
	if mark&lastFragment == 0 || n > smallRecord {
		return nil, nil
	}
	if r.br.Buffered() < n {
		if err := r.wait(true, 0); err != nil {
			return nil, err
		}
	}
	if p, err = r.br.Peek(n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return p[4:], nil
}

// skip takes the record that peek returned.
func (r *recordReader) skip(rec []byte) error {
	_, err := r.br.Discard(4 + len(rec))
	return err
}

func (r *recordReader) mark(started bool) (uint32, error) {
	p, err := r.head(started)
	if err != nil {
		return 0, err
	}
	v := binary.BigEndian.Uint32(p)
	_, err = r.br.Discard(4)
	return v, err
}

// head returns the next record mark without taking it.
func (r *recordReader) head(started bool) ([]byte, error) {
	if r.br.Buffered() < 4 {
		if err := r.wait(started || r.br.Buffered() > 0, r.got); err != nil {
			return nil, err
		}
	}
	p, err := r.br.Peek(4)
	if err == io.EOF && (started || len(p) > 0) {
		err = io.ErrUnexpectedEOF
	}
	return p, err
}

func (r *recordReader) fill(p []byte) error {
	for len(p) > 0 {
		chunk := p[:min(len(p), paceChunk)]
		if r.br.Buffered() < len(chunk) {
			if err := r.wait(true, r.got); err != nil {
				return err
			}
		}
		n, err := io.ReadFull(r.br, chunk)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		p = p[n:]
		r.got += n
	}
	return nil
}

// grow returns b with length n and its old bytes.
func grow(b *Buffer, n int) *Buffer {
	if b == nil {
		return GetBuffer(n)
	}
	if n <= cap(b.B) {
		b.B = b.B[:n]
		return b
	}
	nb := GetBuffer(n)
	copy(nb.B, b.B)
	b.Free()
	return nb
}
