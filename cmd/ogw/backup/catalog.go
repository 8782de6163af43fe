package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// partBytes is the length of a part of a catalog, before it is compressed.
	partBytes = 512 << 10
	// maxPartBytes bounds what a part may be: one entry beyond partBytes.
	maxPartBytes = 4 << 20
	// maxLayers bounds the layers of a snapshot, and the memory of who reads it.
	maxLayers = 32
)

// Layer is a sorted list of entries in parts.
type Layer struct {
	Session string `json:"session"` // 16 hexadecimal digits
	Parts   []Part `json:"parts"`
}

// Part is one object of a layer.
type Part struct {
	Bytes  int64  `json:"bytes"` // as stored
	SHA256 string `json:"sha256"`
	Last   string `json:"last"` // its last key, in hexadecimal
}

func (l *Layer) bytes() (n int64) {
	for i := range l.Parts {
		n += l.Parts[i].Bytes
	}
	return n
}

func partName(session string, n int) string { return fmt.Sprintf("catalogs/%s/%08d", session, n) }

// layerWriter writes a layer; entries come in order.
type layerWriter struct {
	storage Storage
	uploads *uploads
	layer   Layer
	enc     *zstd.Encoder
	buf     []byte
	last    []byte
	entries int64
	moved   func(bytes int)
}

func newLayerWriter(s Storage, u *uploads, session string, moved func(int)) (*layerWriter, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	return &layerWriter{storage: s, uploads: u, layer: Layer{Session: session, Parts: []Part{}}, enc: enc, moved: moved}, err
}

func (w *layerWriter) add(e *entry) error {
	w.buf = e.append(w.buf)
	w.last = append(w.last[:0], e.key...)
	w.entries++
	if len(w.buf) < partBytes {
		return nil
	}
	return w.flush()
}

// flush ends a part. After the last entry it ends the layer.
func (w *layerWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	b := w.enc.EncodeAll(w.buf, nil)
	w.buf = w.buf[:0]
	digest := sha256.Sum256(b)
	name := partName(w.layer.Session, len(w.layer.Parts))
	w.layer.Parts = append(w.layer.Parts, Part{int64(len(b)), hex.EncodeToString(digest[:]), hex.EncodeToString(w.last)})
	w.moved(len(b))
	return w.uploads.put(w.storage, name, b)
}

// entries is a sorted sequence of entries.
type entries interface {
	// head returns the first one that is left, nil at the end.
	head(ctx context.Context) (*entry, error)
	// pop drops it.
	pop()
}

// layerReader reads a layer.
type layerReader struct {
	storage Storage
	layer   *Layer
	next    int
	rest    cutter
	current *entry
	dec     *zstd.Decoder
	read    func(bytes int)
}

// newLayerReader reads from the first part that may hold from on.
func newLayerReader(s Storage, l *Layer, from []byte, read func(int)) (*layerReader, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPartBytes))
	if err != nil {
		return nil, err
	}
	r := &layerReader{storage: s, layer: l, dec: dec, read: read}
	for r.next < len(l.Parts) {
		last, err := hex.DecodeString(l.Parts[r.next].Last)
		if err != nil {
			return nil, fmt.Errorf("%w: the last key of a part", ErrDamaged)
		}
		if !before(last, from) {
			break
		}
		r.next++
	}
	return r, nil
}

func (r *layerReader) head(ctx context.Context) (*entry, error) {
	if r.current != nil {
		return r.current, nil
	}
	for len(r.rest.b) == 0 {
		if r.next == len(r.layer.Parts) {
			return nil, nil
		}
		if err := r.load(ctx); err != nil {
			return nil, err
		}
	}
	e := r.rest.entry()
	if r.rest.err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, partName(r.layer.Session, r.next-1), r.rest.err)
	}
	r.current = &e
	return r.current, nil
}

func (r *layerReader) pop() { r.current = nil }

func (r *layerReader) load(ctx context.Context) error {
	p := &r.layer.Parts[r.next]
	name := partName(r.layer.Session, r.next)
	r.next++
	b, err := getPart(ctx, r.storage, name)
	if err != nil {
		return err
	}
	if digest := sha256.Sum256(b); hex.EncodeToString(digest[:]) != p.SHA256 {
		return fmt.Errorf("%w: %s does not have its checksum", ErrDamaged, name)
	}
	r.read(len(b))
	raw, err := r.dec.DecodeAll(b, nil)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	r.rest = cutter{b: raw}
	return nil
}

// merged is what layers hold together: of each key the newest entry, and none
// that is deleted.
type merged struct {
	layers  []entries // the oldest first
	current *entry
}

// openLayers merges layers from a key on.
func openLayers(ctx context.Context, s Storage, layers []Layer, from []byte, read func(int)) (*merged, error) {
	m := &merged{}
	for i := range layers {
		r, err := newLayerReader(s, &layers[i], from, read)
		if err != nil {
			return nil, err
		}
		m.layers = append(m.layers, r)
	}
	for {
		e, err := m.head(ctx)
		if err != nil || e == nil || !before(e.key, from) {
			return m, err
		}
		m.pop()
	}
}

func (m *merged) head(ctx context.Context) (*entry, error) {
	for m.current == nil {
		var first *entry
		for i := len(m.layers) - 1; i >= 0; i-- {
			e, err := m.layers[i].head(ctx)
			if err != nil {
				return nil, err
			}
			if e != nil && (first == nil || before(e.key, first.key)) {
				first = e
			}
		}
		if first == nil {
			return nil, nil
		}
		for _, l := range m.layers {
			// What was read a moment ago is still there: no error.
			if e, err := l.head(ctx); err != nil {
				return nil, err
			} else if e != nil && bytes.Equal(e.key, first.key) {
				l.pop()
			}
		}
		if first.kind != entryDeleted {
			m.current = first
		}
	}
	return m.current, nil
}

func (m *merged) pop() { m.current = nil }

// packLists are the pieces in the packs of a session as entries.
type packLists struct {
	storage Storage
	session uint64
	packs   []uint32
	list    []packed
	current *entry
	read    func(bytes int)
}

func (p *packLists) head(ctx context.Context) (*entry, error) {
	for p.current == nil && len(p.list) == 0 {
		if len(p.packs) == 0 {
			return nil, nil
		}
		x, begin, err := readIndex(ctx, p.storage, packName(p.session, p.packs[0]))
		if errors.Is(err, ErrDamaged) { // nothing depends on it
			p.packs = p.packs[1:]
			continue
		}
		if err != nil {
			return nil, err
		}
		p.read(int(begin))
		p.list = x.pieces
		if len(p.list) == 0 {
			p.packs = p.packs[1:]
		}
	}
	if p.current == nil {
		x := &p.list[0]
		p.current = &entry{key: x.key, kind: entryPiece, piece: piece{p.session, p.packs[0], x.off, x.len, x.sum}}
	}
	return p.current, nil
}

func (p *packLists) pop() {
	p.current = nil
	if p.list = p.list[1:]; len(p.list) == 0 {
		p.packs = p.packs[1:]
	}
}

// seek drops what stands before key, and returns the entry of key, or nil.
func seek(ctx context.Context, s entries, key []byte) (*entry, error) {
	for {
		e, err := s.head(ctx)
		if err != nil || e == nil || before(key, e.key) {
			return nil, err
		}
		if bytes.Equal(e.key, key) {
			return e, nil
		}
		s.pop()
	}
}
