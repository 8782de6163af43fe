package nfsserver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"ogw/nfsserver/backend"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/rpc"
)

// New returns a Server over an open namespace. Shutdown must be called
// before the namespace is closed.
func New(cfg Config) (*Server, error) {
	table, err := newExportTable(cfg.Exports)
	if err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	seal, err := openSealer(cfg.FS)
	if err != nil {
		return nil, err
	}
	s := &Server{fs: namespaceOf(cfg.FS), log: log, done: cfg.Done, doneAll: cfg.DoneAll, guesses: cfg.Guesses, sealer: seal, border: &border{fs: cfg.FS}, cookies: newCookieCache(), mounts: newMountTable(), library: backend.NewPool()}
	s.exports.Store(table)
	s.newVerifier()
	if s.locks, err = s.newLocks(cfg); err != nil {
		return nil, err
	}
	s.files = newOpenFiles(cfg.FS, log, s.newVerifier)
	s.unwatch = cfg.FS.Watch(s.files)

	rc := cfg.RPC
	rc.Logger = log
	rc.Programs = s.programs()
	rc.Allow = s.Allows
	rc.Observe = s.stats.observe
	rc.Refused = s.tellRefused
	s.rpc = rpc.NewServer(rc)

	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		s.files.run(ctx)
	}()
	return s, nil
}

// secretTimeout bounds reading the store's secret when a server starts.
const secretTimeout = 30 * time.Second

// secrets are what file handles are sealed with, and which store they are of.
type secrets interface {
	FSID() uint64
	StoreSecret(ctx context.Context, name string) (secret []byte, err error)
}

func openSealer(fs secrets) (*sealer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	secret, err := fs.StoreSecret(ctx, handleSecret)
	if err != nil {
		return nil, fmt.Errorf("nfs: the secret of file handles: %w", err)
	}
	return newSealer(fs.FSID(), secret)
}

// newVerifier makes clients send again what they have not committed.
func (s *Server) newVerifier() {
	var b [8]byte
	rand.Read(b[:])
	s.verifier.Store(binary.BigEndian.Uint64(b[:]))
}

// trusts reports whether locks may be named, and reboots reported, from there.
func (s *Server) trusts(client netip.AddrPort) bool {
	ok := s.exports.Load().trusts(client, time.Now())
	if !ok {
		s.tellRefused(client, "NLM and NSM take no calls from ports that any user of the client may use")
	}
	return ok
}

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
