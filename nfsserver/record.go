package nfsserver

import (
	"net/netip"
	"strings"

	"ogw/nfsserver/nlm"
	"ogw/vfs"
)

// opConnect is the operation of a connection, or of a call to a lock manager or
// status monitor, that was turned away.
const opConnect = "CONNECT"

// Record describes a call, or a connection that was turned away,
// after it ended.
type Record struct {
	Operation string // procedure, of NLM with its program's name; CONNECT
	Client    netip.AddrPort
	Machine   string // as the client calls itself
	XID       uint32
	// Claimed is the uid that the client says, UID the one that counted.
	Claimed, UID uint32
	Ino          vfs.Ino // what was acted on, or the directory of Name; 0: Path
	Name         string
	ToDir        vfs.Ino // of RENAME: where to
	ToName       string
	Path         string // of MNT, without a secret
	Status       Status
	Reason       string // beside the status
	// Rights reports whether a bucket was made, removed or renamed, or that its
	// mode or owner changed.
	Rights bool
}

// Refused reports whether the call failed for want of a right.
func (r *Record) Refused() bool { return refused(r.Operation, r.Status) }

func refused(operation string, s Status) bool {
	switch s {
	case ErrAcces, ErrPerm, ErrROFS, ErrBadHandle: // nobody but a forger makes bad handles
		return true
	case ErrNoEnt, ErrNotDir: // of a MNT: what is not exported to a client is not there for it
		return operation == mountNames[mountMnt]
	}
	return false
}

// Operations returns the names of what Records describe.
func Operations() []string {
	out := []string{opConnect, mountNames[mountMnt]}
	out = append(out, nfsNames[procNull+1:]...)
	return append(out, lockOperations()...)
}

// lockOperation is the name of what a procedure of NLM does, however it is answered.
func lockOperation(proc uint32) string {
	return "NLM_" + strings.TrimSuffix(nlm.Names()[proc], "_MSG")
}

// lockOperations are those that resolve a file.
func lockOperations() (list []string) {
	for _, name := range []string{"TEST", "LOCK", "CANCEL", "UNLOCK", "SHARE", "UNSHARE", "NM_LOCK"} {
		list = append(list, "NLM_"+name)
	}
	return list
}
