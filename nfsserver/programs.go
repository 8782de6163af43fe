package nfsserver

import (
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/rpc"
)

// Program numbers (RFC 1813 sections 3 and 5).
const (
	ProgramNFS   = 100003
	ProgramMount = 100005
)

// Procedure numbers (RFC 1813 section 3.3).
const (
	procNull = iota
	procGetattr
	procSetattr
	procLookup
	procAccess
	procReadlink
	procRead
	procWrite
	procCreate
	procMkdir
	procSymlink
	procMknod
	procRemove
	procRmdir
	procRename
	procLink
	procReaddir
	procReaddirplus
	procFsstat
	procFsinfo
	procPathconf
	procCommit
)

var nfsNames = []string{"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE",
	"CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS",
	"FSSTAT", "FSINFO", "PATHCONF", "COMMIT"}

// Procedures of MOUNT version 3 (RFC 1813 section 5.2).
const (
	mountNull = iota
	mountMnt
	mountDump
	mountUmnt
	mountUmntAll
	mountExport
)

var mountNames = []string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

// programs is all that this door serves.
func (s *Server) programs() []rpc.Program {
	list := []rpc.Program{s.nfsProgram(), s.mountProgram()}
	for _, p := range s.locks.Programs() {
		p.Trusts = s.trusts
		list = append(list, p)
	}
	return list
}

// Procedure is one that this door serves.
type Procedure struct {
	Program, Version, Number uint32
	Name                     string // as RFC 1813 has it; "NLM_" before those of the lock manager
}

// Procedures returns the table of procedures, for tests that must miss none.
func Procedures() (list []Procedure) {
	for _, p := range (&Server{locks: &nlm.Server{}}).programs() {
		for n, proc := range p.Procs {
			if proc.Handle != nil {
				list = append(list, Procedure{p.Number, p.High, uint32(n), proc.Name})
			}
		}
	}
	return list
}
