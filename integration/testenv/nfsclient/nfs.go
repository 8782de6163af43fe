package nfsclient

import "ogw/nfsserver/xdr"

// Programs, and procedures of NFS that are called by number.
const (
	NFS      = 100003
	Mount    = 100005
	ProcNull = 0
	ProcRead = 6

	procGetattr     = 1
	procLookup      = 3
	procReadlink    = 5
	procWrite       = 7
	procCreate      = 8
	procMkdir       = 9
	procSymlink     = 10
	procRemove      = 12
	procRename      = 14
	procReaddir     = 16
	procReaddirplus = 17
	procMnt         = 1
)

// Statuses (RFC 1813 section 2.6); the first hundred are those of MOUNT, too.
const (
	OK        = 0
	Perm      = 1
	NoEnt     = 2
	Acces     = 13
	XDev      = 18
	ROFS      = 30
	Stale     = 70
	BadHandle = 10001
)

const (
	version   = 3
	maxHandle = 64
	maxPath   = 1024
	fileSync  = 2
	attrBytes = 84
	dirBytes  = 4096
)

// status makes a call and returns its status and the rest of its results.
func (c *Conn) status(prog, proc uint32, w *xdr.Writer) (uint32, *xdr.Reader, error) {
	r, err := c.Call(prog, version, proc, w.B)
	if err != nil {
		return 0, nil, err
	}
	st := r.Uint32()
	return st, r, r.Err()
}

// Mnt is MNT: the handle of a path.
func (c *Conn) Mnt(path string) (uint32, []byte, error) {
	var w xdr.Writer
	w.String(path)
	st, r, err := c.status(Mount, procMnt, &w)
	if err != nil || st != OK {
		return st, nil, err
	}
	return st, r.Opaque(maxHandle), r.Err()
}

func dirop(dir []byte, name string) *xdr.Writer {
	w := &xdr.Writer{}
	w.Opaque(dir)
	w.String(name)
	return w
}

// Lookup is LOOKUP.
func (c *Conn) Lookup(dir []byte, name string) (uint32, []byte, error) {
	st, r, err := c.status(NFS, procLookup, dirop(dir, name))
	if err != nil || st != OK {
		return st, nil, err
	}
	return st, r.Opaque(maxHandle), r.Err()
}

// Getattr is GETATTR, of which only the status counts.
func (c *Conn) Getattr(fh []byte) (uint32, error) {
	var w xdr.Writer
	w.Opaque(fh)
	st, _, err := c.status(NFS, procGetattr, &w)
	return st, err
}

// ReadArgs are the arguments of READ.
func ReadArgs(fh []byte, off uint64, count uint32) []byte {
	var w xdr.Writer
	w.Opaque(fh)
	w.Uint64(off)
	w.Uint32(count)
	return w.B
}

// Read is READ.
func (c *Conn) Read(fh []byte, off uint64, count uint32) (uint32, []byte, error) {
	st, r, err := c.status(NFS, ProcRead, &xdr.Writer{B: ReadArgs(fh, off, count)})
	if err != nil || st != OK {
		return st, nil, err
	}
	skipAttr(r)
	r.Uint64() // count, eof
	return st, r.Opaque(int(count)), r.Err()
}

// Readlink is READLINK.
func (c *Conn) Readlink(fh []byte) (uint32, string, error) {
	var w xdr.Writer
	w.Opaque(fh)
	st, r, err := c.status(NFS, procReadlink, &w)
	if err != nil || st != OK {
		return st, "", err
	}
	skipAttr(r)
	return st, r.String(maxPath), r.Err()
}

// Write is WRITE, durable when it returns.
func (c *Conn) Write(fh []byte, off uint64, data []byte) (uint32, error) {
	w := xdr.Writer{B: ReadArgs(fh, off, uint32(len(data)))}
	w.Uint32(fileSync)
	w.Opaque(data)
	st, _, err := c.status(NFS, procWrite, &w)
	return st, err
}

// putMode is a sattr3 of a mode alone.
func putMode(w *xdr.Writer, mode uint32) {
	w.Bool(true)
	w.Uint32(mode)
	for range 5 { // uid, gid, size, atime, mtime
		w.Uint32(0)
	}
}

// Create is CREATE, unchecked.
func (c *Conn) Create(dir []byte, name string) (uint32, []byte, error) {
	w := dirop(dir, name)
	w.Uint32(0)
	putMode(w, 0o666)
	return c.made(procCreate, w)
}

// Mkdir is MKDIR.
func (c *Conn) Mkdir(dir []byte, name string) (uint32, []byte, error) {
	w := dirop(dir, name)
	putMode(w, 0o777)
	return c.made(procMkdir, w)
}

// Symlink is SYMLINK.
func (c *Conn) Symlink(dir []byte, name, target string) (uint32, []byte, error) {
	w := dirop(dir, name)
	putMode(w, 0o777)
	w.String(target)
	return c.made(procSymlink, w)
}

func (c *Conn) made(proc uint32, w *xdr.Writer) (uint32, []byte, error) {
	st, r, err := c.status(NFS, proc, w)
	if err != nil || st != OK || !r.Bool() {
		return st, nil, err
	}
	return st, r.Opaque(maxHandle), r.Err()
}

// Remove is REMOVE.
func (c *Conn) Remove(dir []byte, name string) (uint32, error) {
	st, _, err := c.status(NFS, procRemove, dirop(dir, name))
	return st, err
}

// Rename is RENAME.
func (c *Conn) Rename(from []byte, name string, to []byte, newName string) (uint32, error) {
	w := dirop(from, name)
	w.Opaque(to)
	w.String(newName)
	st, _, err := c.status(NFS, procRename, w)
	return st, err
}

// Entry is one of READDIR.
type Entry struct {
	Name   string
	Cookie uint64
}

// Readdir is one READDIR: what follows cookie, in at most count bytes, and whether the
// directory ends there.
func (c *Conn) Readdir(dir []byte, cookie uint64, count uint32) (st uint32, list []Entry, end bool, err error) {
	var w xdr.Writer
	w.Opaque(dir)
	w.Uint64(cookie)
	w.Uint64(0)
	w.Uint32(count)
	st, r, err := c.status(NFS, procReaddir, &w)
	if err != nil || st != OK {
		return st, nil, false, err
	}
	skipAttr(r)
	r.Uint64()
	for r.Bool() {
		r.Uint64()
		list = append(list, Entry{Name: r.String(1024), Cookie: r.Uint64()})
	}
	end = r.Bool()
	return st, list, end, r.Err()
}

// ReaddirPlus is one READDIRPLUS from the start: handles by name.
func (c *Conn) ReaddirPlus(dir []byte) (uint32, map[string][]byte, error) {
	var w xdr.Writer
	w.Opaque(dir)
	w.Uint64(0)
	w.Uint64(0)
	w.Uint32(dirBytes)
	w.Uint32(dirBytes)
	st, r, err := c.status(NFS, procReaddirplus, &w)
	if err != nil || st != OK {
		return st, nil, err
	}
	skipAttr(r)
	r.Uint64()
	list := map[string][]byte{}
	for r.Bool() {
		r.Uint64()
		name := r.String(1024)
		r.Uint64()
		skipAttr(r)
		if list[name] = nil; r.Bool() {
			list[name] = r.Opaque(maxHandle)
		}
	}
	return st, list, r.Err()
}

// skipAttr skips a post_op_attr.
func skipAttr(r *xdr.Reader) {
	if r.Bool() {
		for range attrBytes / 4 {
			r.Uint32()
		}
	}
}
