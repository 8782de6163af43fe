// Package nfsclient speaks NFS version 3 with many calls in flight on one
// connection, for benchmarks: it decodes no more of an answer than it must.
package nfsclient

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"ogw/integration/testenv/resvport"
	"ogw/nfsserver/xdr"
)

// Programs and procedures (RFC 1813).
const (
	nfs   = 100003
	mount = 100005

	Null    = 0
	Getattr = 1
	read    = 6
	write   = 7
	create  = 8
	commit  = 21
)

const (
	lastFragment = 1 << 31
	// callTimeout is far above what any answer takes.
	callTimeout = 2 * time.Minute
	// headWords is what Run looks at: record mark, transaction, header, status.
	headWords = 8
)

// Client is one connection, as the superuser.
type Client struct {
	Root []byte // handle of what was mounted

	conn net.Conn
	br   *bufio.Reader
	xid  uint32
	cred []byte
}

// Dial connects and mounts dir; MOUNT listens at mountAddr.
func Dial(addr, mountAddr, dir string) (*Client, error) {
	m, err := Connect(mountAddr)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var w xdr.Writer
	w.String(dir)
	r, err := m.call(mount, 1, w.B)
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	root := append([]byte(nil), r.Opaque(64)...)
	if r.Err() != nil {
		return nil, r.Err()
	}
	c, err := Connect(addr)
	if err != nil {
		return nil, err
	}
	c.Root = root
	return c, nil
}

// Connect dials and mounts nothing.
func Connect(addr string) (*Client, error) {
	conn, err := resvport.Dial("", addr)
	if err != nil {
		return nil, err
	}
	var w xdr.Writer
	w.Uint32(0)
	w.String("bench")
	w.Uint32(0)
	w.Uint32(0)
	w.Uint32(0)
	var cred xdr.Writer
	cred.Uint32(1) // AUTH_SYS
	cred.Opaque(w.B)
	cred.Uint64(0)
	// Transaction numbers must differ from those of clients before.
	return &Client{conn: conn, br: bufio.NewReaderSize(conn, 512<<10), cred: cred.B,
		xid: uint32(time.Now().UnixNano() >> 10)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// record appends a call to b.
func (c *Client) record(b []byte, prog, proc uint32, args []byte) []byte {
	c.xid++
	n := 6*4 + len(c.cred) + len(args)
	for _, v := range [...]uint32{lastFragment | uint32(n), c.xid, 0, 2, prog, 3, proc} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = append(b, c.cred...)
	return append(b, args...)
}

// call sends one call, waits, and returns the results behind the status.
func (c *Client) call(prog, proc uint32, args []byte) (*xdr.Reader, error) {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(c.record(nil, prog, proc, args)); err != nil {
		return nil, err
	}
	var mark [4]byte
	if _, err := io.ReadFull(c.br, mark[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(mark[:])&^lastFragment)
	if _, err := io.ReadFull(c.br, b); err != nil {
		return nil, err
	}
	r := xdr.NewReader(b)
	r.Fixed(5 * 4)
	accept, status := r.Uint32(), r.Uint32()
	if r.Err() != nil || accept != 0 || status != 0 {
		return nil, fmt.Errorf("procedure %d: accept state %d, status %d: %w", proc, accept, status, errStatus)
	}
	return &r, nil
}

var errStatus = errors.New("call refused")

// Create makes a file and returns its handle.
func (c *Client) Create(dir []byte, name string) ([]byte, error) {
	r, err := c.call(nfs, create, createArgs(dir, name))
	if err != nil {
		return nil, err
	}
	if !r.Bool() {
		return nil, errors.New("no handle of what was made")
	}
	return append([]byte(nil), r.Opaque(64)...), r.Err()
}

// Write sends one unstable WRITE and returns the write verifier.
func (c *Client) Write(file []byte, off uint64, data []byte) (verifier uint64, err error) {
	r, err := c.call(nfs, write, writeArgs(file, off, data))
	if err != nil {
		return 0, err
	}
	skipWcc(r)
	r.Uint64() // count and how it was committed
	return r.Uint64(), r.Err()
}

// Commit makes what was written durable, and returns the write verifier.
func (c *Client) Commit(file []byte) (verifier uint64, err error) {
	var w xdr.Writer
	w.Opaque(file)
	w.Uint64(0)
	w.Uint32(0)
	r, err := c.call(nfs, commit, w.B)
	if err != nil {
		return 0, err
	}
	skipWcc(r)
	return r.Uint64(), r.Err()
}

// Read returns up to count bytes at off.
func (c *Client) Read(file []byte, off uint64, count uint32) ([]byte, error) {
	r, err := c.call(nfs, read, readArgs(file, off, count))
	if err != nil {
		return nil, err
	}
	skipAttributes(r)
	r.Uint64() // count and end of file
	return r.Opaque(int(count)), r.Err()
}

func skipWcc(r *xdr.Reader) {
	if r.Bool() {
		r.Fixed(24) // size, mtime and ctime from before
	}
	skipAttributes(r)
}

// attributeBytes is the size of a fattr3.
const attributeBytes = 84

func skipAttributes(r *xdr.Reader) {
	if r.Bool() {
		r.Fixed(attributeBytes)
	}
}

// attributes is a sattr3 with a mode.
func attributes(mode uint32) []byte {
	var w xdr.Writer
	w.Bool(true)
	w.Uint32(mode)
	for range 5 { // uid, gid, size, atime, mtime: as they are
		w.Uint32(0)
	}
	return w.B
}

// HandleArgs are a handle: GETATTR.
func HandleArgs(fh []byte) []byte {
	var w xdr.Writer
	w.Opaque(fh)
	return w.B
}

// createArgs are those of a guarded CREATE.
func createArgs(dir []byte, name string) []byte {
	var w xdr.Writer
	w.Opaque(dir)
	w.String(name)
	w.Uint32(1)
	w.B = append(w.B, attributes(0o644)...)
	return w.B
}

// readArgs are those of a READ.
func readArgs(file []byte, off uint64, count uint32) []byte {
	var w xdr.Writer
	w.Opaque(file)
	w.Uint64(off)
	w.Uint32(count)
	return w.B
}

// writeArgs are those of an unstable WRITE.
func writeArgs(file []byte, off uint64, data []byte) []byte {
	w := xdr.Writer{B: make([]byte, 0, len(data)+128)}
	w.Opaque(file)
	w.Uint64(off)
	w.Uint32(uint32(len(data)))
	w.Uint32(0)
	w.Opaque(data)
	return w.B
}

// Run keeps depth calls of proc in flight until next returns nil arguments,
// and returns how many were answered. Any failure ends it.
func (c *Client) Run(proc uint32, depth int, next func(i int) []byte) (done int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return 0, err
	}
	window := make(chan struct{}, depth)
	sent := make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	total := make(chan int, 1)
	go func() {
		n, err := c.send(proc, window, stop, next)
		total <- n
		sent <- err
	}()
	want := -1
	for want < 0 || done < want {
		select {
		case want = <-total:
			continue
		case <-window: // an answer must come
		}
		if err := c.receive(); err != nil {
			return done, err
		}
		done++
	}
	return done, <-sent
}

// send puts calls on their way, as many at once as the window lets in.
func (c *Client) send(proc uint32, window chan<- struct{}, stop <-chan struct{}, next func(i int) []byte) (n int, err error) {
	bw := bufio.NewWriterSize(c.conn, 64<<10)
	var rec []byte
	for {
		args := next(n)
		if args == nil {
			return n, bw.Flush()
		}
		rec = c.record(rec[:0], nfs, proc, args)
		if _, err := bw.Write(rec); err != nil {
			return n, err
		}
		select {
		case window <- struct{}{}:
		default:
			if err := bw.Flush(); err != nil {
				return n, err
			}
			select {
			case window <- struct{}{}:
			case <-stop:
				return n, nil
			}
		}
		n++
	}
}

// receive takes one answer.
func (c *Client) receive() error {
	head, err := c.br.Peek(headWords * 4)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head) &^ lastFragment)
	accept, status := binary.BigEndian.Uint32(head[24:]), binary.BigEndian.Uint32(head[28:])
	if accept != 0 || status != 0 {
		return fmt.Errorf("accept state %d, status %d: %w", accept, status, errStatus)
	}
	_, err = c.br.Discard(4 + size)
	return err
}
