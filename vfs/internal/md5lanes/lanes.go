// Package md5lanes computes the MD5 of many byte strings at once. One MD5 is
// a chain in which every step waits for the last, so that it uses one lane of
// a vector register; sixteen of them take little longer than one.
//
// The assembly is made by gen (go generate) from RFC 1321.
package md5lanes

import "encoding/binary"

// Lanes is how many byte strings Blocks takes.
const Lanes = 16

// BlockBytes is the unit of MD5.
const BlockBytes = 64

// State is what MD5 knows of the blocks so far (RFC 1321, A to D).
type State [4]uint32

// Init returns the state before the first block.
func Init() State { return State{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476} }

// Append appends the sum that a state stands for.
func (s *State) Append(b []byte) []byte {
	for _, w := range s {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// Lane is one byte string.
type Lane struct {
	State *State
	Data  []byte
}

// Blocks adds the first n bytes of each lane's data to its state. There are
// 1 to Lanes lanes, n is a positive multiple of BlockBytes, no lane has less,
// and the processor is Available.
func Blocks(lanes []Lane, n int) {
	if n <= 0 || n%BlockBytes != 0 || len(lanes) == 0 || len(lanes) > Lanes {
		panic("md5lanes: bad number of bytes or lanes")
	}
	var states [4][Lanes]uint32
	var data [Lanes]*byte
	for i := range data {
		l := &lanes[0] // idle lanes hash what the first does
		if i < len(lanes) {
			l = &lanes[i]
		}
		_ = l.Data[n-1]
		data[i] = &l.Data[0]
		for k := range states {
			states[k][i] = l.State[k]
		}
	}
	blocks16(&states, &data, n/BlockBytes)
	for i := range lanes {
		for k := range states {
			lanes[i].State[k] = states[k][i]
		}
	}
}
