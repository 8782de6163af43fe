package backup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/minio/crc64nvme"
)

const (
	// packBytes is the length of a pack: long enough to be written at the speed
	// of the medium, short enough that little is lost of one that is not whole. A
	// longer blob is a pack of its own.
	packBytes = 16 << 20
	packMagic = "ogwpack1"
	// packHead is what stands before the index: the magic, the length of the
	// index and its CRC64NVME.
	packHead = len(packMagic) + 4 + 8
	// packPeek is how much of a pack is read to see its index.
	packPeek = 64 << 10
	// indexBytes is how long an index gets: more than that of packBytes of usual pieces. Keys
	// are the clients' to choose, and may be longer than what they stand for.
	indexBytes = 8 << 20
	// maxPackIndex bounds what is read as an index.
	maxPackIndex = 64 << 20
)

func packName(session uint64, n uint32) string { return fmt.Sprintf("packs/%016x/%08d", session, n) }

// packIndex lists the pieces of a pack in the order of their keys. A piece is
// named by the offset that it was written at; it stands behind those before it,
// which differs once Prune took some away.
type packIndex struct{ pieces []packed }

type packed struct {
	key []byte
	off uint32
	len uint32
	sum sum
}

func (x *packIndex) encode() []byte {
	var b []byte
	for i := range x.pieces {
		p := &x.pieces[i]
		b = binary.AppendUvarint(b, uint64(len(p.key)))
		b = append(b, p.key...)
		b = binary.AppendUvarint(b, uint64(p.off))
		b = binary.AppendUvarint(b, uint64(p.len))
		b = append(b, p.sum[:]...)
	}
	return b
}

func decodeIndex(b []byte) (x packIndex, err error) {
	c := cutter{b: b}
	for len(c.b) > 0 {
		p := packed{key: c.take(c.uint())}
		p.off, p.len = c.uint32(), c.uint32()
		copy(p.sum[:], c.take(sumBytes))
		if c.err == nil && len(p.key) < 2 {
			c.err = fmt.Errorf("a piece with the key %q", p.key)
		}
		if c.err != nil {
			return x, c.err
		}
		x.pieces = append(x.pieces, p)
	}
	return x, nil
}

// packBuilder fills one pack.
type packBuilder struct {
	session uint64
	n       uint32
	index   packIndex
	listed  int // bytes of the index, at most
	data    []byte
}

// fits reports whether a piece of so many bytes belongs into this pack.
func (p *packBuilder) fits(key []byte, bytes int) bool {
	return len(p.data) == 0 || len(p.data)+bytes <= packBytes && p.listed+listedBytes(key) <= indexBytes
}

// listedBytes is how much a piece takes of an index, at most.
func listedBytes(key []byte) int { return 3*binary.MaxVarintLen32 + len(key) + sumBytes }

// add adds a piece, which must fit.
func (p *packBuilder) add(key, b []byte, s sum) piece {
	at := piece{session: p.session, pack: p.n, off: uint32(len(p.data)), len: uint32(len(b)), sum: s}
	p.data = append(p.data, b...)
	p.listed += listedBytes(key)
	p.index.pieces = append(p.index.pieces, packed{key, at.off, at.len, s})
	return at
}

// build returns the pack.
func (p *packBuilder) build() []byte { return buildPack(&p.index, p.data) }

func buildPack(x *packIndex, data []byte) []byte {
	index := x.encode()
	b := make([]byte, 0, packHead+len(index)+len(data))
	b = append(b, packMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(index)))
	b = binary.BigEndian.AppendUint64(b, crc64nvme.Checksum(index))
	return append(append(b, index...), data...)
}

// readIndex returns the index of a pack, and where its pieces begin.
func readIndex(ctx context.Context, s Storage, name string) (x packIndex, begin int64, err error) {
	b, err := s.Get(ctx, name, 0, packPeek)
	if err != nil {
		return x, 0, err
	}
	length, err := indexLength(b)
	if err == nil && packHead+length > len(b) && len(b) == packPeek {
		if b, err = s.Get(ctx, name, 0, int64(packHead+length)); err != nil {
			return x, 0, err
		}
	}
	if err == nil {
		x, err = parseIndex(b)
	}
	if err != nil {
		return x, 0, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return x, int64(packHead + length), nil
}

func indexLength(b []byte) (int, error) {
	if len(b) < packHead || string(b[:len(packMagic)]) != packMagic {
		return 0, errors.New("it does not begin as a pack")
	}
	n := binary.BigEndian.Uint32(b[len(packMagic):])
	if n > maxPackIndex {
		return 0, fmt.Errorf("an index of %d bytes", n)
	}
	return int(n), nil
}

// parseIndex reads the index at the beginning of b.
func parseIndex(b []byte) (x packIndex, err error) {
	n, err := indexLength(b)
	if err != nil {
		return x, err
	}
	if packHead+n > len(b) {
		return x, errShort
	}
	index := b[packHead : packHead+n]
	if crc64nvme.Checksum(index) != binary.BigEndian.Uint64(b[len(packMagic)+4:]) {
		return x, errors.New("its index does not have its checksum")
	}
	return decodeIndex(index)
}

// pack is a whole one in memory.
type pack struct {
	name string
	b    []byte
	at   map[uint32][2]int // offset in the name: from, to in b
}

func readPack(ctx context.Context, s Storage, name string) (*pack, error) {
	b, err := getPart(ctx, s, name)
	if err != nil {
		return nil, err
	}
	x, err := parseIndex(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	n, _ := indexLength(b) // it was just parsed
	p := &pack{name, b, make(map[uint32][2]int, len(x.pieces))}
	pos := packHead + n
	for i := range x.pieces {
		end := pos + int(x.pieces[i].len)
		p.at[x.pieces[i].off] = [2]int{pos, end}
		pos = end
	}
	return p, nil
}

// get returns a piece, verified.
func (p *pack) get(key []byte, at *piece) ([]byte, error) {
	r, ok := p.at[at.off]
	if !ok || r[1] > len(p.b) {
		return nil, fmt.Errorf("%w: %s does not hold %s", ErrDamaged, p.name, keyText(key))
	}
	b := p.b[r[0]:r[1]]
	return b, at.verify(key, b)
}
