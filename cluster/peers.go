package cluster

import (
	"context"
	"time"
)

// PeerWait is how long a client that the others cannot hear of, or that tells them nothing,
// waits after it registered itself, before it changes anything: those who answer from
// memory have looked who is there by then.
const PeerWait = 4 * time.Second

// Peer is a client of a store, as others reach it.
type Peer struct {
	ID uint64
	// Address is HOST:PORT, and Key what it proves there that it is the one. Both are
	// empty for one that others cannot reach.
	Address string
	Key     []byte
}

// AnswerTime is how long after Keep returned who keeps may begin to: an answer that takes longer says that
// nothing may be kept. It includes what the one who keeps may be longer at it than he was told, by his clock.
const AnswerTime = 100 * time.Millisecond

// Moment is how far a client is told of changes by others, taken before something is read. 0 is none.
type Moment uint64

// Peers has the clients of one store tell each other what they are about to change, so that
// each answers from memory what nobody changes. Who the clients are is for its user to say.
type Peers interface {
	// Me returns how others reach this client.
	Me() (address string, key []byte)
	// Join says under which ID this client is among the others, how to Look who these
	// are, and whom to call with what is to be called once no transaction of before can commit
	// any more.
	Join(id uint64, look func(context.Context) error, doubt func(settled func()))
	// Look has look return who the clients are, this one included, and whether nobody can
	// come who does not tell. It returns the error of look. One look follows another.
	Look(ctx context.Context, look func(context.Context) (list []Peer, all bool, err error)) error
	// Introduce returns when all others know of this client, which has registered itself, or
	// look before they answer from memory. Before that it changes nothing that others may
	// have read. Those of ended are gone, and answer nothing, though the store names them.
	Introduce(ctx context.Context, ended []uint64) error
	// Told reports whether all others tell this client what they change.
	Told() bool
	// Forget has what was read so far asked for again.
	Forget()
	// Moment returns that of now. It comes before what Keep is asked about is read.
	Moment() Moment
	// Keep returns for how long somebody who asks nobody meanwhile, such as a kernel, may keep what was
	// read of keys since a moment, under a number of the caller's; 0 is not at all. If one of them is to be
	// changed before, by whomever, the function of OnRecall is called with the number, and has returned before
	// the change is committed.
	Keep(since Moment, number uint64, keys ...[]byte) time.Duration
	// OnRecall sets that function, before Keep is called. It returns when nobody keeps any more what the numbers
	// stand for. It must not wait for a change of the store, and is called for one recall at a time.
	OnRecall(recall func(numbers []uint64))
	// Close has nobody told any more. It comes after the last change.
	Close() error
}
