package httpapi

import (
	"sync"

	"ogw/httpapi/fair"
	"ogw/vfs/clients/pipe"
	"ogw/vfs/clients/unsent"
)

const (
	// SendBufferBytes is the size of a response buffer: large enough that
	// system calls do not matter, small enough for thousands of clients.
	SendBufferBytes = 256 << 10
	// largeSendBytes is the size of the buffers that the first maxLargeSends
	// large responses use (64 MiB in all): the store reads fastest so.
	largeSendBytes = 1 << 20
	maxLargeSends  = 64
	// maxSends bounds the buffers of SendBufferBytes in use (32 MiB in all). Those
	// who come later, and small responses, have one of leastSendBytes, a block of
	// the store: a client who is slow on many connections holds less.
	maxSends       = 128
	leastSendBytes = 64 << 10
	// SendsBytes is what a Sends takes at the most, the kernel's part included,
	// beside leastSendBytes for each reply.
	SendsBytes = maxLargeSends*largeSendBytes + maxSends*SendBufferBytes + unsent.Conns*unsent.Bytes
)

// Sends is what the replies of a process's doors are sent with: their buffers,
// and what the kernel holds of them. It is safe for concurrent use.
type Sends struct {
	least, small, large sync.Pool
	smalls, slots       *fair.Pool // small and large buffers in use
	wides               *unsent.Pool
	pipes               *pipe.Pool
}

// NewSends returns one that takes so large a part of SendsBytes, from 0 to 1, at
// the most. Beyond it replies go out in smaller pieces.
func NewSends(part float64) *Sends {
	share := func(n int) int { return int(part * float64(n)) }
	return &Sends{
		least:  sync.Pool{New: func() any { return newBuffer(leastSendBytes) }},
		small:  sync.Pool{New: func() any { return newBuffer(SendBufferBytes) }},
		large:  sync.Pool{New: func() any { return newBuffer(largeSendBytes) }},
		smalls: fair.NewPool(int64(share(maxSends))), slots: fair.NewPool(int64(share(maxLargeSends))),
		wides: unsent.NewPool(share(unsent.Conns)),
		pipes: pipe.NewPool(maxLargeSends),
	}
}

func newBuffer(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// little returns a buffer for a small response, and its return.
func (s *Sends) little() (buf []byte, giveBack func()) {
	return lend(&s.least, nil, fair.Key{})
}

// much returns a buffer for a response of n bytes for k, and its return.
func (s *Sends) much(k fair.Key, n int64) (buf []byte, giveBack func()) {
	switch {
	case n > SendBufferBytes && s.slots.Take(k, 1):
		return lend(&s.large, s.slots, k)
	case s.smalls.Take(k, 1):
		return lend(&s.small, s.smalls, k)
	}
	return s.little()
}

// lend takes a buffer of p, which counts as k's in a place of slots, if any.
func lend(p *sync.Pool, slots *fair.Pool, k fair.Key) (buf []byte, giveBack func()) {
	b := p.Get().(*[]byte)
	return *b, func() {
		p.Put(b)
		if slots != nil {
			slots.Give(k, 1)
		}
	}
}
