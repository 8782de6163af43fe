package record

import (
	"fmt"
	"strconv"
	"strings"
)

// maxEntered bounds the gateways that a folder names: more than start until those before them
// are gone from the store.
const maxEntered = 64

// enteredDigits are those of a gateway's ID.
const enteredDigits = 16

// MaxEnteredBytes is more than a file of Entered has.
const MaxEnteredBytes = 4096

// Entered are the gateways that had a data folder one after another, the last one at the end,
// under one lock.
//
//	text: the lock, then the ID of each gateway, 16 hexadecimal digits; a line each
type Entered struct {
	Lock string // one line
	IDs  []uint64
}

// Enter adds the next gateway.
func (e *Entered) Enter(id uint64) {
	e.IDs = append(e.IDs[max(0, len(e.IDs)-maxEntered+1):len(e.IDs):len(e.IDs)], id)
}

// Encode returns the file.
func (e *Entered) Encode() []byte {
	b := append([]byte(e.Lock), '\n')
	for _, id := range e.IDs {
		b = fmt.Appendf(b, "%0*x\n", enteredDigits, id)
	}
	return b
}

// DecodeEntered is the inverse of Encode. ok is false for a file that is anything else.
func DecodeEntered(b []byte) (e Entered, ok bool) {
	lock, rest, ok := strings.Cut(string(b), "\n")
	if !ok || len(b) > MaxEnteredBytes {
		return e, false
	}
	e.Lock = lock
	for line := range strings.Lines(rest) {
		text, ended := strings.CutSuffix(line, "\n")
		id, err := strconv.ParseUint(text, 16, 64)
		if !ended || err != nil || len(text) != enteredDigits {
			return Entered{}, false
		}
		e.IDs = append(e.IDs, id)
	}
	return e, true
}
