package nfsserver

import (
	"net/netip"
	"strings"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// tell tells of a call that ended, if somebody wants to know: of refusals, of
// changes of buckets, and of all with DoneAll.
func (q *request) tell(name string, err error) {
	status, rights := statusOf(err), err == nil && q.rights(name)
	if rights || q.s.doneAll || refused(name, status) {
		if err == nil || !dropped(err) {
			q.s.done(q.record(name, status, rights))
		}
	}
}

// record describes the call. It is made for who is told alone: most calls tell nobody.
func (q *request) record(name string, status Status, rights bool) *Record {
	r := &Record{Operation: name, Status: status, Rights: rights,
		Client: q.call.Remote, XID: q.call.XID, Machine: string(q.call.Cred.Machine),
		Claimed: q.call.Cred.UID, UID: q.cred.UID(),
		Ino: q.ino, Name: q.name, ToDir: q.toDir, ToName: q.toName}
	if q.export == nil {
		r.UID = r.Claimed // nothing was found out yet
	}
	return r
}

// rights reports whether a call that succeeded changed a bucket.
func (q *request) rights(name string) bool {
	switch name {
	case nfsNames[procMkdir], nfsNames[procRmdir]:
		return q.ino == vfs.RootIno
	case nfsNames[procRename]:
		return q.ino == vfs.RootIno || q.toDir == vfs.RootIno
	}
	return q.bucket
}

// noteRights remembers that a mode or an owner was set, if it is a bucket's.
func (q *request) noteRights(a *vfs.Attr, set *vfs.SetAttr) {
	q.bucket = a.IsDir() && a.Parent == vfs.RootIno && (set.Mode != nil || set.UID != nil || set.GID != nil)
}

// tellMount reports a MNT.
func (s *Server) tellMount(c *rpc.Call, path string, err error) {
	if s.done == nil || err == nil && !s.doneAll {
		return
	}
	path, _, _ = strings.Cut(path, "@") // what follows may be a secret
	r := Record{Operation: mountNames[mountMnt], Client: c.Remote, Machine: string(c.Cred.Machine), XID: c.XID,
		Claimed: c.Cred.UID, UID: c.Cred.UID, Path: path, Status: statusOf(err)}
	if err != nil {
		r.Reason = err.Error()
	}
	s.done(&r)
}

// tellRefused reports a connection that was turned away.
func (s *Server) tellRefused(client netip.AddrPort, why string) {
	if s.done != nil {
		s.done(&Record{Operation: opConnect, Client: client, Status: ErrAcces, Reason: why})
	}
}
