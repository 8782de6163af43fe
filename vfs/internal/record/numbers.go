package record

import (
	"errors"
	"math/rand/v2"

	"ogw/cluster"
)

// FirstNumber follows the root's.
const FirstNumber = uint64(RootIno) + 1

const (
	// numberSkip is more than any process can have taken: ten days of a million a
	// second.
	numberSkip = 1 << 40
	// numberSpread is what is skipped at the most: with a million numbers taken each time,
	// two that go on from the same number meet once in eight million times. It is
	// possible a million times.
	numberSpread = 1 << 44
)

// SkipNumbers has numbers begin far behind those that the store knows, since others may
// have been handed out that it does not; blobs with these are left alone. How far is
// random: metadata may be set back to the same instant more than once.
func SkipNumbers(t cluster.Txn) error {
	c, err := Counters(t, CounterNumber, CounterSkipped)
	if err != nil {
		return err
	}
	skip := numberSkip + rand.Uint64N(numberSpread-numberSkip)
	n := max(c[0], FirstNumber) + skip
	return errors.Join(SetCounter(t, CounterNumber, n), SetCounter(t, CounterSwept, n), SetCounter(t, CounterSkipped, c[1]+skip))
}

// MarkLeft notes that what was stored so far may stay without a name.
func MarkLeft(t cluster.Txn) error {
	n, err := Counter(t, CounterNumber)
	if err != nil {
		return err
	}
	return SetCounter(t, CounterLeft, n)
}

// SweepAgain notes that what has numbers from first on may have been stored without a name
// after it was looked for, by who has been put out: it is looked for again. Where numbers
// were skipped meanwhile, what is before them is left alone.
func SweepAgain(t cluster.Txn, first uint64) error {
	n, err := Counters(t, CounterNumber, CounterSwept, CounterLate)
	if err != nil {
		return err
	}
	number, swept, late := n[0], n[1], n[2]
	if number == 0 || number > first && number-first > numberSkip/2 {
		return nil
	}
	number++ // so that CounterLeft moves, also where none was taken since
	return errors.Join(SetCounter(t, CounterNumber, number), SetCounter(t, CounterLeft, number),
		SetCounter(t, CounterSwept, min(swept, first)), SetCounter(t, CounterLate, late+1))
}
