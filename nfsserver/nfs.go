package nfsserver

import (
	"context"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// nfsProgram lists the procedures. What changes something is answered from
// the duplicate cache when it comes again. WRITE is, too: its repetition
// would be harmless by itself, but must not overtake a later WRITE while the
// original still runs.
func (s *Server) nfsProgram() rpc.Program {
	procs := make([]rpc.Proc, len(nfsNames))
	set := func(n int, shape int, fn procFunc) *rpc.Proc {
		procs[n] = rpc.Proc{Name: nfsNames[n], Handle: s.handler(nfsNames[n], shape, fn)}
		return &procs[n]
	}
	procs[procNull] = rpc.Proc{Name: nfsNames[procNull],
		Quick:  func(*rpc.Call, xdr.Reader, *rpc.Reply) bool { return true },
		Handle: func(context.Context, *rpc.Call, *rpc.Reply) error { return nil }}
	set(procGetattr, failNothing, getattr).Quick = s.quickGetattr
	set(procSetattr, failWcc, setattr).Cached = true
	set(procLookup, failPostOp, lookup)
	set(procAccess, failPostOp, access)
	set(procReadlink, failPostOp, readlink)
	set(procRead, failPostOp, read).ReplyBytes = readReplyBytes
	set(procWrite, failWcc, write).Cached = true
	set(procCreate, failWcc, create).Cached = true
	set(procMkdir, failWcc, mkdir).Cached = true
	set(procSymlink, failWcc, symlink).Cached = true
	set(procMknod, failWcc, mknod).Cached = true
	set(procRemove, failWcc, remove).Cached = true
	set(procRmdir, failWcc, rmdir).Cached = true
	set(procRename, failRename, rename).Cached = true
	set(procLink, failLink, link).Cached = true
	set(procReaddir, failPostOp, readdir).ReplyBytes = readdirReplyBytes
	set(procReaddirplus, failPostOp, readdirplus).ReplyBytes = readdirplusReplyBytes
	set(procFsstat, failPostOp, fsstat)
	set(procFsinfo, failPostOp, fsinfo)
	set(procPathconf, failPostOp, pathconf)
	set(procCommit, failWcc, commit)
	return rpc.Program{Number: ProgramNFS, Low: 3, High: 3, Procs: procs}
}

func readReplyBytes(r xdr.Reader) int {
	r.Opaque(maxHandle)
	r.Uint64()
	return int(min(r.Uint32(), maxTransfer))
}

func readdirReplyBytes(r xdr.Reader) int {
	r.Opaque(maxHandle)
	r.Uint64()
	r.Uint64()
	return int(min(r.Uint32(), maxDirReply))
}

func readdirplusReplyBytes(r xdr.Reader) int {
	r.Opaque(maxHandle)
	r.Uint64()
	r.Uint64()
	r.Uint32()
	return int(min(r.Uint32(), maxDirReply))
}
