// Package backend hands calls to unmodified github.com/willscott/go-nfs
// servers over in-memory connections: those calls that the library answers
// right, which are NULL, MNT and UMNT of MOUNT, and READLINK of NFS.
//
//	front ─ record ─► net.Pipe ─► go-nfs Server ─► Answer (this one call's)
//
// The library serves one call at a time on a connection and passes neither
// context nor credentials to its handler. So a Pool keeps several servers,
// each with one connection and one handler of its own; a call borrows one
// of them, sets the handler's Answer, and sends one record. The front has
// decoded the call and done what it asks before: the library has no bounds, does
// not survive a panic, and cannot be waited for, so it never waits for a store.
//
// Attributes are left out of its replies (they are optional in the
// protocol): the library's have no change time, no file-system ID, and Go's
// mode bits.
package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	gonfs "github.com/willscott/go-nfs"

	"ogw/nfsserver/xdr"
)

const (
	// maxServers bounds the calls that run in the library at one time.
	maxServers = 16
	// maxRecord is the size of the library's read buffer: an argument that
	// crosses its end would be corrupted.
	maxRecord = 4096
	// callTimeout bounds one call.
	callTimeout = 30 * time.Second
	// callHeader is the length of a call's header without credentials, and
	// of an accepted reply's header: six words each, and four of a call's
	// empty credential and verifier.
	callHeader  = 10 * 4
	replyHeader = 6 * 4

	lastFragment = 1 << 31
	protoVersion = 3
)

var (
	// ErrTooLong: the call does not fit the library's buffer.
	ErrTooLong = errors.New("nfs: call too long for the library")
	// ErrFailed: the library gave no usable answer.
	ErrFailed = errors.New("nfs: library call failed")
	// ErrClosed: the Pool was closed.
	ErrClosed = errors.New("nfs: library pool is closed")
)

// Answer is what a call has come to, for the library to encode.
type Answer struct {
	// Status is the mountstat3 of MNT, and Handle the root's file handle if it is 0.
	Status uint32
	Handle []byte
	// Link is the target of the link that READLINK reads.
	Link string
}

// Pool is a set of library servers.
type Pool struct {
	slots chan struct{}

	mu     sync.Mutex
	closed bool
	idle   []*server
}

// NewPool returns a Pool without servers; they are started when needed.
func NewPool() *Pool {
	silence()
	return &Pool{slots: make(chan struct{}, maxServers)}
}

// silence turns the library's logger off, which is global there: what fails
// is logged by the front, with the client and the reason.
var silence = sync.OnceFunc(func() {
	gonfs.SetLogger(&gonfs.DefaultLogger{Level: gonfs.PanicLevel})
})

// Call runs one call and returns its results.
func (p *Pool) Call(ctx context.Context, prog, proc uint32, args []byte, answer Answer) ([]byte, error) {
	if callHeader+len(args) > maxRecord-4 {
		return nil, ErrTooLong
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := p.take()
	if err != nil {
		return nil, err
	}
	results, err := s.call(prog, proc, args, answer)
	if err != nil {
		s.close()
		return nil, err
	}
	p.put(s)
	return results, nil
}

func (p *Pool) take() (*server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return s, nil
	}
	return newServer(), nil
}

func (p *Pool) put(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.close()
		return
	}
	p.idle = append(p.idle, s)
}

// Close ends the servers. Calls that run end on their own.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.idle {
		s.close()
	}
	p.idle = nil
}

// server is one library server with its only connection.
type server struct {
	conn    net.Conn // our end
	handler *handler
	xid     uint32
}

func newServer() *server {
	ours, theirs := net.Pipe()
	s := &server{conn: ours, handler: &handler{}}
	l := &oneConn{conn: theirs, closed: make(chan struct{})}
	s.handler.stop = l.Close
	lib := &gonfs.Server{Handler: s.handler}
	go func() { _ = lib.Serve(l) }() // returns when the listener is closed
	return s
}

func (s *server) close() {
	s.conn.Close()
	_ = s.handler.stop()
}

func (s *server) call(prog, proc uint32, args []byte, answer Answer) ([]byte, error) {
	s.xid++
	s.handler.answer = answer // the call before has been answered
	s.conn.SetDeadline(time.Now().Add(callTimeout))
	w := xdr.Writer{B: make([]byte, 0, 4+callHeader+len(args))}
	w.Uint32(lastFragment | uint32(callHeader+len(args)))
	for _, v := range [...]uint32{s.xid, 0, 2, prog, protoVersion, proc, 0, 0, 0, 0} {
		w.Uint32(v)
	}
	w.B = append(w.B, args...)
	if _, err := s.conn.Write(w.B); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	var mark [4]byte
	if _, err := io.ReadFull(s.conn, mark[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	n := binary.BigEndian.Uint32(mark[:]) &^ lastFragment
	if n < replyHeader || n > 2*maxRecord+replyHeader {
		return nil, fmt.Errorf("%w: reply of %d bytes", ErrFailed, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.conn, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return s.results(b)
}

// results checks the header of a reply and takes it off.
func (s *server) results(b []byte) ([]byte, error) {
	r := xdr.NewReader(b)
	for i, want := range [...]uint32{s.xid, 1, 0, 0, 0, 0} {
		if got := r.Uint32(); got != want {
			return nil, fmt.Errorf("%w: word %d of the reply is %d, not %d", ErrFailed, i, got, want)
		}
	}
	return r.Rest(), r.Err()
}

// oneConn is a listener with one connection to accept.
type oneConn struct {
	mu     sync.Mutex
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept returns the connection, and then waits for Close.
func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close ends Accept.
func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is part of net.Listener.
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "in-memory", Net: "unix"} }
