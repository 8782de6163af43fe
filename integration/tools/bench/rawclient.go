package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

const (
	rawBufferBytes = 256 << 10
	// rawTimeout bounds one request: longer than any that is measured.
	rawTimeout = time.Minute
)

// rawConn is one HTTP/1.1 connection that does as little as a client can:
// it sends bytes that were made before and skims the answers. The two cores
// are shared with the server that is measured.
type rawConn struct {
	conn     net.Conn
	buf      []byte
	deadline time.Time
}

func dialRaw(ctx context.Context, addr string) (*rawConn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &rawConn{conn: c, buf: make([]byte, rawBufferBytes)}, nil
}

func (c *rawConn) close() { c.conn.Close() }

// rawRequest is a request as it goes over the wire.
type rawRequest struct {
	head   []byte // ends with the empty line
	body   []byte
	isHead bool  // the answer has no body
	want   int64 // length of the answer's body; -1: any
}

// do sends r and skims the answer; check, if not nil, gets the body piece by
// piece.
func (c *rawConn) do(r *rawRequest, check func([]byte) error) error {
	if now := time.Now(); c.deadline.Before(now.Add(rawTimeout / 2)) {
		c.deadline = now.Add(rawTimeout)
		if err := c.conn.SetDeadline(c.deadline); err != nil {
			return err
		}
	}
	out := net.Buffers{r.head, r.body}
	if len(r.body) == 0 {
		out = out[:1]
	}
	if _, err := out.WriteTo(c.conn); err != nil {
		return err
	}
	return c.answer(r, check)
}

var (
	errNoLength = errors.New("an answer without Content-Length")
	endOfHead   = []byte("\r\n\r\n")
	lengthField = []byte("\r\nContent-Length: ")
)

func (c *rawConn) answer(r *rawRequest, check func([]byte) error) error {
	fill, end := 0, -1
	for end < 0 {
		n, err := c.conn.Read(c.buf[fill:])
		if err != nil {
			return err
		}
		fill += n
		if end = bytes.Index(c.buf[:fill], endOfHead); end < 0 && fill == len(c.buf) {
			return errors.New("the header of an answer is too long")
		}
	}
	head := c.buf[:end+2]
	if len(head) < 12 || head[9] != '2' {
		return fmt.Errorf("%.60s: %.600s", r.head, c.buf[:fill])
	}
	var length int64
	if at := bytes.Index(head, lengthField); at >= 0 {
		v := head[at+len(lengthField):]
		var err error
		if length, err = strconv.ParseInt(string(v[:bytes.IndexByte(v, '\r')]), 10, 64); err != nil {
			return err
		}
	} else if !r.isHead && r.want != 0 {
		return errNoLength
	}
	if r.want >= 0 && length != r.want {
		return fmt.Errorf("%.60s: %d bytes, want %d", r.head, length, r.want)
	}
	if r.isHead {
		return nil
	}
	return c.body(c.buf[end+len(endOfHead):fill], length, check)
}

// body skims the rest of an answer, of which part is here already.
func (c *rawConn) body(part []byte, length int64, check func([]byte) error) error {
	for {
		if int64(len(part)) > length {
			return errors.New("an answer longer than its Content-Length")
		}
		if check != nil {
			if err := check(part); err != nil {
				return err
			}
		}
		if length -= int64(len(part)); length == 0 {
			return nil
		}
		n, err := c.conn.Read(c.buf[:min(int64(len(c.buf)), length)])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		part = c.buf[:n]
	}
}

// compare returns a check that all of an answer is want.
func compare(want []byte) func([]byte) error {
	return func(p []byte) error {
		if len(p) > len(want) || !bytes.Equal(p, want[:len(p)]) {
			return errors.New("an answer with other bytes than were stored")
		}
		want = want[len(p):]
		return nil
	}
}
