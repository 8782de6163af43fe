package coherence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxMessage bounds a message, in bytes.
	maxMessage = 1 << 20
	// changeBytes is what a change takes of it at the most, beside its lines, and lineBytes
	// what one of these does.
	changeBytes = 2 * binary.MaxVarintLen64
	lineBytes   = 3
)

// kind of a message.
type kind byte

// What a subscriber says, and what the client that it subscribed to does.
const (
	renew   kind = iota + 1 // number: that Granted has
	applied                 // number: of the Told that it took note of
	bye
	welcome // Begun: changes that are under way
	granted // number: of the renewal
	told    // number: that applied has; Begun, Ended
)

// change is one that is about to happen.
type change struct {
	ticket uint64
	lines  []Line
}

// message is what goes over a connection:
//
//	length (4 bytes) of what follows, kind (1)
//	number, how many begin, how many end
//	for each that begins: ticket, how many lines, lines
//	for each that ends: ticket
//
// where nothing is said of their bytes, numbers are unsigned varints.
type message struct {
	kind   kind
	number uint64
	begun  []change
	ended  []uint64
}

var errMessage = errors.New("a message of another gateway is not understood")

func (m *message) append(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(m.kind))
	b = binary.AppendUvarint(b, m.number)
	b = binary.AppendUvarint(b, uint64(len(m.begun)))
	b = binary.AppendUvarint(b, uint64(len(m.ended)))
	for _, c := range m.begun {
		b = binary.AppendUvarint(b, c.ticket)
		b = binary.AppendUvarint(b, uint64(len(c.lines)))
		for _, l := range c.lines {
			b = binary.AppendUvarint(b, uint64(l))
		}
	}
	for _, ticket := range m.ended {
		b = binary.AppendUvarint(b, ticket)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// readMessage reads one.
func readMessage(r *bufio.Reader) (m message, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > maxMessage {
		return m, fmt.Errorf("%w: %d bytes", errMessage, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return m, err
	}
	return parseMessage(b)
}

// parseMessage reads what follows the length.
func parseMessage(b []byte) (m message, err error) {
	d := decoder{b: b[1:]}
	m.kind, m.number = kind(b[0]), d.number()
	begun, ended := d.count(), d.count()
	for range begun {
		c := change{ticket: d.number()}
		n := d.count()
		if d.failed {
			break
		}
		c.lines = make([]Line, n)
		for i := range c.lines {
			l := d.number()
			d.failed = d.failed || l >= lines
			c.lines[i] = Line(l)
		}
		m.begun = append(m.begun, c)
	}
	for range ended {
		if d.failed {
			break
		}
		m.ended = append(m.ended, d.number())
	}
	if d.failed || len(d.b) > 0 {
		return message{}, errMessage
	}
	return m, nil
}

// decoder takes numbers off b.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count is a number of things that take a byte at least.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.failed = true
		return 0
	}
	return n
}
