package nlm

import (
	"math"

	"ogw/nfsserver/nsm"
	"ogw/nfsserver/xdr"
	"ogw/vfs/lock"
)

// Program number and version. Version 4 is the one that goes with NFS 3.
const (
	ProgramNumber = 100021
	Version       = 4
)

// Procedures. The _MSG forms are answered by a call of the _RES form, five
// numbers further.
const (
	procNull       = 0
	procTest       = 1
	procLock       = 2
	procCancel     = 3
	procUnlock     = 4
	procGranted    = 5
	procTestMsg    = 6
	procLockMsg    = 7
	procCancelMsg  = 8
	procUnlockMsg  = 9
	procGrantedMsg = 10
	procGrantedRes = 15
	procShare      = 20
	procUnshare    = 21
	procNMLock     = 22
	procFreeAll    = 23

	msgToRes = 5 // from a _MSG procedure to its _RES
)

var procNames = []string{"NULL", "TEST", "LOCK", "CANCEL", "UNLOCK", "GRANTED",
	"TEST_MSG", "LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG", "GRANTED_MSG",
	"TEST_RES", "LOCK_RES", "CANCEL_RES", "UNLOCK_RES", "GRANTED_RES",
	"16", "17", "18", "19", "SHARE", "UNSHARE", "NM_LOCK", "FREE_ALL"}

// Names of the procedures, by number.
func Names() []string { return procNames }

const (
	// maxNetobj is MAXNETOBJ_SZ, the longest cookie and file handle.
	maxNetobj = 1024
	// maxOwner bounds the opaque handle of an owner, which is kept for as
	// long as its locks: clients send a process number and a host name.
	maxOwner = 255
)

// lockArgs are the arguments of TEST, LOCK, CANCEL, UNLOCK and GRANTED, as
// far as each has them. The slices alias the call.
type lockArgs struct {
	cookie    []byte
	block     bool
	exclusive bool
	caller    string
	fh        []byte
	oh        []byte
	svid      uint32
	offset    uint64
	length    uint64
	reclaim   bool
	state     uint32 // of the client's status monitor, 0: unknown
	monitored bool   // the client's restart ends the lock: all but those of NM_LOCK
}

// decode reads the arguments of a procedure (the synchronous form's number).
func (a *lockArgs) decode(r *xdr.Reader, proc int) error {
	a.cookie = r.Opaque(maxNetobj)
	switch proc {
	case procLock, procCancel, procNMLock:
		a.block, a.exclusive = r.Bool(), r.Bool()
	case procTest, procGranted:
		a.exclusive = r.Bool()
	}
	a.caller = r.String(nsm.MaxName)
	a.fh = r.Opaque(maxNetobj)
	a.oh = r.Opaque(maxOwner)
	a.svid = r.Uint32()
	a.offset, a.length = r.Uint64(), r.Uint64()
	if proc == procLock || proc == procNMLock {
		a.reclaim = r.Bool()
		a.state = r.Uint32()
	}
	return r.Err()
}

// encodeGranted returns the arguments of a GRANTED call: the lock as it was
// asked for.
func (a *lockArgs) encodeGranted(cookie []byte) []byte {
	var w xdr.Writer
	w.Opaque(cookie)
	w.Bool(a.exclusive)
	w.String(a.caller)
	w.Opaque(a.fh)
	w.Opaque(a.oh)
	w.Uint32(a.svid)
	w.Uint64(a.offset)
	w.Uint64(a.length)
	return w.B
}

// lock returns the request as the manager has it. A length of 0, or one that
// goes over the largest offset, means up to the end of the file.
func (a *lockArgs) lock(client string) (lock.Lock, error) {
	if a.offset > math.MaxInt64 {
		return lock.Lock{}, statFBig
	}
	l := lock.Lock{Owner: ownerOf(client, a.svid, a.oh), Start: a.offset, End: lock.EOF}
	if a.length > 0 && a.length-1 <= lock.EOF-a.offset {
		l.End = a.offset + a.length - 1
	}
	if a.exclusive {
		l.Type = lock.Exclusive
	}
	return l, nil
}

// putHolder writes an nlm4_holder. Of locks of other doors it has the process
// number alone.
func putHolder(w *xdr.Writer, h lock.Lock) {
	svid, oh, ok := splitOwner(h.Owner)
	if !ok {
		svid = h.PID
	}
	w.Bool(h.Type == lock.Exclusive)
	w.Uint32(svid)
	w.Opaque(oh)
	w.Uint64(h.Start)
	if h.End == lock.EOF {
		w.Uint64(0)
	} else {
		w.Uint64(h.End - h.Start + 1)
	}
}

// shareArgs are the arguments of SHARE and UNSHARE.
type shareArgs struct {
	cookie  []byte
	caller  string
	fh      []byte
	oh      []byte
	deny    uint32
	access  uint32
	reclaim bool
}

// maxShareMode is the highest of fsh_mode and fsh_access: reading and
// writing.
const maxShareMode = 3

func (a *shareArgs) decode(r *xdr.Reader) error {
	a.cookie = r.Opaque(maxNetobj)
	a.caller = r.String(nsm.MaxName)
	a.fh = r.Opaque(maxNetobj)
	a.oh = r.Opaque(maxOwner)
	a.deny, a.access = r.Uint32(), r.Uint32()
	a.reclaim = r.Bool()
	if a.deny > maxShareMode || a.access > maxShareMode {
		r.Fail(xdr.ErrBadValue)
	}
	return r.Err()
}

// decodeResult reads an nlm4_res.
func decodeResult(b []byte) (cookie []byte, stat Stat, err error) {
	r := xdr.NewReader(b)
	cookie, stat = r.Opaque(maxNetobj), Stat(r.Uint32())
	return cookie, stat, r.Err()
}
