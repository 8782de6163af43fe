package nfsserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"time"

	"ogw/nfsserver/backend"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs/clients/subscriber"
)

// mountProgram lists the procedures. The library answers NULL, MNT and UMNT;
// it has no others.
func (s *Server) mountProgram() rpc.Program {
	procs := make([]rpc.Proc, len(mountNames))
	for n, handle := range map[int]func(context.Context, *rpc.Call, *rpc.Reply) error{
		mountNull:    s.mountForward(mountNull),
		mountMnt:     s.mnt,
		mountDump:    s.dump,
		mountUmnt:    s.umnt,
		mountUmntAll: s.umntAll,
		mountExport:  s.export,
	} {
		procs[n] = rpc.Proc{Name: mountNames[n], Handle: handle}
	}
	for _, n := range []int{mountDump, mountExport} {
		procs[n].ReplyBytes = func(xdr.Reader) int { return maxListReply }
	}
	return rpc.Program{Number: ProgramMount, Low: 3, High: 3, Procs: procs}
}

func (s *Server) mountForward(proc uint32) func(context.Context, *rpc.Call, *rpc.Reply) error {
	return func(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
		return s.forwardMount(ctx, r, proc, nil, backend.Answer{})
	}
}

func (s *Server) forwardMount(ctx context.Context, r *rpc.Reply, proc uint32, args []byte, answer backend.Answer) error {
	results, err := s.library.Call(ctx, ProgramMount, proc, args, answer)
	if err != nil {
		return err
	}
	r.B = append(r.B, results...)
	return nil
}

// dirpath decodes the only argument of MNT and UMNT, and encodes it anew for
// the library, which fails on an empty path (it means the root here).
func dirpath(c *rpc.Call) (path string, args []byte, err error) {
	path = c.Args.String(maxMountPath)
	if err := c.Args.Err(); err != nil {
		return "", nil, fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	if path == "" {
		path = "/"
	}
	var w xdr.Writer
	w.String(path)
	return path, w.B, nil
}

// mnt is MNT (RFC 1813 section 5.2.1).
func (s *Server) mnt(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	dirpath, args, err := dirpath(c)
	if err != nil {
		return err
	}
	fh, err := s.mount(ctx, c.Remote, dirpath)
	r.Status = mountStatus(err)
	s.tellMount(c, dirpath, err)
	if err != nil {
		s.log.Warn("nfs: mount refused", "client", c.Remote, "machine", string(c.Cred.Machine),
			"err", err) // not the path: it may hold a secret
	}
	return s.forwardMount(ctx, r, mountMnt, args, backend.Answer{Status: r.Status, Handle: fh})
}

func (s *Server) mount(ctx context.Context, client netip.AddrPort, dirpath string) ([]byte, error) {
	x, dir, err := s.findExport(dirpath, client)
	if err != nil {
		return nil, err
	}
	a, err := s.border.resolve(ctx, x, dir)
	if err != nil {
		return nil, err
	}
	if !a.IsDir() {
		return nil, ErrNotDir
	}
	s.mounts.add(client.Addr(), dir)
	s.log.Info("nfs: mounted", "client", client, "path", dir)
	return s.sealer.append(nil, handle{x.id, a.Ino, a.Gen}), nil
}

// guessDoor is what guesses at secrets of exports are counted under.
const guessDoor = "nfs export"

// findExport is exportTable.find for who may still try: wrong secrets count for
// the client, whoever it says that it is.
func (s *Server) findExport(dirpath string, client netip.AddrPort) (*export, string, error) {
	table := s.exports.Load()
	if account, right := table.tried(dirpath); account != "" {
		try, err := s.guesses.Try(subscriber.Of(client.Addr()), guessDoor, account)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("%w: secrets of export %s: %w", ErrAcces, account, err)
		case right:
			try.Right()
		default:
			try.Wrong()
		}
	}
	return table.find(dirpath, client, time.Now())
}

// mountStatus maps an error to a mountstat3, whose numbers are those of
// nfsstat3 as far as they go (RFC 1813 section 5.1.5).
func mountStatus(err error) uint32 {
	switch s := statusOf(err); s {
	case OK, ErrPerm, ErrNoEnt, ErrIO, ErrAcces, ErrNotDir, ErrInval, ErrNameTooLong, ErrNotSupp, ErrServerFault:
		return uint32(s)
	case ErrJukebox:
		return uint32(ErrIO)
	}
	return uint32(ErrServerFault)
}

// umnt is UMNT (RFC 1813 section 5.2.3). It looks at no secret, so that the mount
// list does not reveal whether one is right.
func (s *Server) umnt(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	p, args, err := dirpath(c)
	if err != nil {
		return err
	}
	dir, _ := cutSecret(p)
	for _, named := range []string{dir, p} {
		s.mounts.remove(c.Remote.Addr(), path.Clean("/"+named))
	}
	return s.forwardMount(ctx, r, mountUmnt, args, backend.Answer{})
}

// umntAll is UMNTALL (RFC 1813 section 5.2.4).
func (s *Server) umntAll(_ context.Context, c *rpc.Call, _ *rpc.Reply) error {
	s.mounts.remove(c.Remote.Addr(), "")
	return nil
}

// dump is DUMP (RFC 1813 section 5.2.2): what the caller has mounted, as far as there is
// room. The paths of others may be those of exports that it may not use.
func (s *Server) dump(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	client := c.Remote.Addr()
	for _, path := range s.mounts.paths(client) {
		if r.Len() > maxListReply {
			break
		}
		r.Uint32(1)
		r.String(client.String())
		r.String(path)
	}
	r.Uint32(0)
	return nil
}

// export is EXPORT (RFC 1813 section 5.2.5): the exports that the caller may
// use, never their secrets.
func (s *Server) export(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	now := time.Now()
	seen := map[string]bool{} // exports that differ in secret or rights alone
	for _, x := range s.exports.Load().list {
		key := fmt.Sprint(x.Path, x.Networks)
		if x.closed(c.Remote.Addr(), now) != nil || seen[key] {
			continue
		}
		seen[key] = true
		if r.Len() > maxListReply {
			return errors.New("nfs: export list too long")
		}
		r.Uint32(1)
		r.String(x.Path)
		for _, n := range x.Networks {
			r.Uint32(1)
			r.String(n.String())
		}
		r.Uint32(0)
	}
	r.Uint32(0)
	return nil
}
