package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/lock"
)

// FileLocks are the locks of a file that several gateways grant (key 'L').
//
// Value: version byte; owners, held ranges, waiting requests and ended ones, each list with
// its length before it. Numbers are uvarints unless stated.
//
//	owner    gateway(8), closing(8), client, ID: strings with their length before them. One
//	         without names is no owner: its ID lists what the one before was granted (Untold),
//	         each ticket(8), space(1), start, last minus start. Programs that do not know it drop it
//	range    owner (its index), flags: 1 exclusive, 2 flock, 4 share reservation, for what: 16
//	         reading, 32 writing, what nobody else may: 64 reading, 128 writing; start, last minus
//	         start, PID, or of a remote client the era
//	waiting  the same, ticket(8), gateway(8)
//	ended    ticket(8), gateway(8), why(1)
type FileLocks struct {
	lock.File
	// Holders are what is known of the owners of what is held.
	Holders map[lock.Owner]LockHolder
	// Waits are the gateways of those that wait, by ticket.
	Waits map[uint64]uint64
	// Ended are requests that wait no more and got nothing, until their gateways have
	// learned it. One that is not there any more was granted.
	Ended []EndedWait
}

// LockHolder is an owner of locks.
type LockHolder struct {
	Gateway uint64 // without it, the locks are none; 0: they need none, as those of remote clients
	// Closing is a random number while a descriptor of the owner was closed, maybe its
	// last; 0 for none, and of remote clients, where the number of the last of Untold stands.
	Closing uint64
	// Untold is, of a remote client, what was granted to requests that may wait, and that it is not
	// known to have learned in another way, in order.
	Untold []UntoldGrant
}

// UntoldGrant is what was granted to a request.
type UntoldGrant struct {
	Ticket     uint64
	Space      lock.Space
	Start, End uint64
}

// EndedWait is a request that waited in vain.
type EndedWait struct {
	Ticket, Gateway uint64
	Why             byte
}

// Why something waited in vain.
const (
	EndDeadlock  = 1 // it would wait for itself
	EndDismissed = 2 // a remote client asked another gateway, or came back
)

const (
	locksVersion  = 1
	lockExclusive = 1
	lockFlock     = 2
	lockShare     = 4
	shareAccess   = 4 // the bit from which on what it is for stands
	shareDeny     = 6
)

// LockKey is the key of a file's locks, WaitKey that of the inodes in which an owner
// waits for a range, 8 bytes each, in order.
func LockKey(ino uint64) []byte { return key1(TabLock, ino) }

// WaitKey is see LockKey.
func WaitKey(o lock.Owner) []byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(o.Client))))
	h.Write([]byte(o.Client))
	h.Write([]byte(o.ID))
	return append([]byte{TabWait}, h.Sum(nil)[:20]...)
}

// EncodeWaits returns the value of a WaitKey.
func EncodeWaits(inos []uint64) []byte {
	var b []byte
	for _, ino := range inos {
		b = binary.BigEndian.AppendUint64(b, ino)
	}
	return b
}

// DecodeWaits is the inverse.
func DecodeWaits(b []byte) (inos []uint64, err error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("%w: where an owner of locks waits", fserr.ErrCorrupt)
	}
	for ; len(b) > 0; b = b[8:] {
		inos = append(inos, binary.BigEndian.Uint64(b))
	}
	return inos, nil
}

// Idle reports whether nothing is to be kept.
func (r *FileLocks) Idle() bool { return r.Len()+len(r.Ended) == 0 }

// Encode returns the value.
func (r *FileLocks) Encode() []byte {
	var owners []byte
	n, index := 0, make(map[lock.Owner]int)
	for _, l := range r.all() {
		if _, known := index[l.Owner]; known {
			continue
		}
		index[l.Owner] = n
		n++
		h := r.Holders[l.Owner]
		if k := len(h.Untold); k > 0 {
			n++
			h.Closing = h.Untold[k-1].Ticket
			owners = appendOwner(owners, l.Owner, h)
			owners = appendOwner(owners, lock.Owner{ID: untoldText(h.Untold)}, LockHolder{})
		} else {
			owners = appendOwner(owners, l.Owner, h)
		}
	}
	b := append(binary.AppendUvarint([]byte{locksVersion}, uint64(n)), owners...)
	b = binary.AppendUvarint(b, uint64(r.Len()-len(r.Waiting)))
	for s := range r.Held {
		for i := range r.Held[s] {
			b = appendLock(b, lock.Space(s), &r.Held[s][i], index)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.Waiting)))
	for i := range r.Waiting {
		w := &r.Waiting[i]
		b = appendLock(b, w.Space, &w.Lock, index)
		b = binary.BigEndian.AppendUint64(b, w.Ticket)
		b = binary.BigEndian.AppendUint64(b, r.Waits[w.Ticket])
	}
	b = binary.AppendUvarint(b, uint64(len(r.Ended)))
	for _, e := range r.Ended {
		b = binary.BigEndian.AppendUint64(b, e.Ticket)
		b = append(binary.BigEndian.AppendUint64(b, e.Gateway), e.Why)
	}
	return b
}

func appendOwner(b []byte, o lock.Owner, h LockHolder) []byte {
	b = binary.BigEndian.AppendUint64(b, h.Gateway)
	b = binary.BigEndian.AppendUint64(b, h.Closing)
	b = append(binary.AppendUvarint(b, uint64(len(o.Client))), o.Client...)
	return append(binary.AppendUvarint(b, uint64(len(o.ID))), o.ID...)
}

func untoldText(list []UntoldGrant) string {
	var b []byte
	for _, u := range list {
		b = append(binary.BigEndian.AppendUint64(b, u.Ticket), byte(u.Space))
		b = binary.AppendUvarint(binary.AppendUvarint(b, u.Start), u.End-u.Start)
	}
	return string(b)
}

// untold is the inverse of untoldText.
func (d *locksReader) untold(text string) (list []UntoldGrant) {
	in := locksReader{b: []byte(text)}
	for len(in.b) > 0 && !in.bad {
		u := UntoldGrant{Ticket: in.fixed(), Space: lock.Space(in.byte()), Start: in.number()}
		u.End = u.Start + in.number()
		in.bad = in.bad || u.Space >= lock.Spaces || u.End < u.Start || u.End > lock.EOF
		list = append(list, u)
	}
	d.bad = d.bad || in.bad || len(list) == 0
	return list
}

// all returns all ranges, held and waiting.
func (r *FileLocks) all() []lock.Lock {
	list := slices.Concat(r.Held[:]...)
	for i := range r.Waiting {
		list = append(list, r.Waiting[i].Lock)
	}
	return list
}

func appendLock(b []byte, s lock.Space, l *lock.Lock, index map[lock.Owner]int) []byte {
	flags := byte(0)
	if s == lock.Share {
		flags = lockShare | l.Type.Access()<<shareAccess | l.Type.Deny()<<shareDeny
	}
	if l.Type == lock.Exclusive {
		flags |= lockExclusive
	}
	if s == lock.Flock {
		flags |= lockFlock
	}
	b = append(binary.AppendUvarint(b, uint64(index[l.Owner])), flags)
	b = binary.AppendUvarint(b, l.Start)
	b = binary.AppendUvarint(b, l.End-l.Start)
	if l.Owner.Remote() {
		return binary.AppendUvarint(b, uint64(l.Era))
	}
	return binary.AppendUvarint(b, uint64(l.PID))
}

// DecodeFileLocks is the inverse of Encode; no value is one without locks.
func DecodeFileLocks(b []byte) (*FileLocks, error) {
	r := &FileLocks{Holders: make(map[lock.Owner]LockHolder), Waits: make(map[uint64]uint64)}
	if b == nil {
		return r, nil
	}
	d := locksReader{b: b}
	if d.byte() != locksVersion {
		d.bad = true
	}
	owners := make([]lock.Owner, d.count(18))
	for i := range owners {
		h := LockHolder{Gateway: d.fixed(), Closing: d.fixed()}
		o := lock.Owner{Client: d.string(), ID: d.string()}
		if owners[i] = o; o.Client == "" && i > 0 && owners[i-1].Remote() {
			o = owners[i-1]
			h = LockHolder{Gateway: r.Holders[o].Gateway, Untold: d.untold(owners[i].ID)}
		} else if o.Remote() && h.Closing != 0 { // whatever it was of: programs of before note that alone
			h.Untold, h.Closing = []UntoldGrant{{Ticket: h.Closing, End: lock.EOF}}, 0
		}
		r.Holders[o] = h
	}
	holds := make(map[lock.Owner]bool)
	for range d.count(5) {
		s, l := d.lock(owners)
		r.Held[s] = append(r.Held[s], l)
		holds[l.Owner] = true
	}
	for range d.count(21) {
		s, l := d.lock(owners)
		w := lock.Waiter{Space: s, Lock: l, Ticket: d.fixed()}
		r.Waiting = append(r.Waiting, w)
		r.Waits[w.Ticket] = d.fixed()
	}
	for range d.count(17) {
		r.Ended = append(r.Ended, EndedWait{d.fixed(), d.fixed(), d.byte()})
	}
	if d.bad || len(d.b) > 0 {
		return nil, fmt.Errorf("%w: locks of a file", fserr.ErrCorrupt)
	}
	for _, o := range owners {
		if !holds[o] {
			delete(r.Holders, o)
		}
	}
	return r, nil
}

// locksReader reads a value; bad is set when it ends early or makes no sense.
type locksReader struct {
	b   []byte
	bad bool
}

func (d *locksReader) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *locksReader) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *locksReader) fixed() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (d *locksReader) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *locksReader) string() string { return string(d.take(d.number())) }

// count returns how many follow that have so many bytes each at the least.
func (d *locksReader) count(least int) uint64 {
	n := d.number()
	if d.bad || n > uint64(len(d.b)/least) {
		d.bad = true
		return 0
	}
	return n
}

func (d *locksReader) lock(owners []lock.Owner) (s lock.Space, l lock.Lock) {
	i, flags := d.number(), d.byte()
	l.Start = d.number()
	l.End = l.Start + d.number()
	l.PID = uint32(d.number())
	share := flags&(1<<shareAccess-1) == lockShare
	if flags&lockExclusive != 0 {
		l.Type = lock.Exclusive
	}
	if flags&lockFlock != 0 {
		s = lock.Flock
	}
	if share {
		s, l.Type = lock.Share, lock.Reserve(flags>>shareAccess, flags>>shareDeny)
	}
	if i >= uint64(len(owners)) || !share && flags > lockExclusive|lockFlock || l.End < l.Start || l.End > lock.EOF {
		d.bad = true
		return s, l
	}
	if l.Owner = owners[i]; l.Owner.Remote() {
		l.PID, l.Era = 0, l.PID
	}
	return s, l
}
