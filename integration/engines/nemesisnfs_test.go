package engines

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// maxRegister is longer than what a key holds.
const maxRegister = 64 << 10

// errSaysNothing is of an operation of which nothing follows.
var errSaysNothing = errors.New("nothing was learned")

// nfsWays are a client's connections to the gateways.
type nfsWays struct {
	bucket []byte
	conns  map[*node]*nfsclient.Conn
}

func newNFSWays(n *nemesis) *nfsWays {
	return &nfsWays{n.bucket, map[*node]*nfsclient.Conn{}}
}

func (w *nfsWays) close() {
	for x := range w.conns {
		w.drop(x)
	}
}

func (w *nfsWays) drop(x *node) {
	if c := w.conns[x]; c != nil {
		c.Net.Close()
		delete(w.conns, x)
	}
}

func (w *nfsWays) conn(x *node) (*nfsclient.Conn, error) {
	if c := w.conns[x]; c != nil {
		return c, nil
	}
	c, err := nfsclient.Dial("", x.server.NFS)
	if err == nil {
		c.Timeout = opTimeout
		w.conns[x] = c
	}
	return c, err
}

// nfsHandle returns the handle of a directory at the top, which all gateways take.
func nfsHandle(s *testenv.Server, name string) ([]byte, error) {
	c, err := nfsclient.Dial("", s.NFS)
	if err != nil {
		return nil, err
	}
	defer c.Net.Close()
	return topHandle(c, name)
}

// topHandle is nfsHandle over a connection.
func topHandle(c *nfsclient.Conn, name string) (fh []byte, err error) {
	st, root, err := c.Mnt("/")
	if err == nil && st == nfsclient.OK {
		st, fh, err = c.Lookup(root, name)
	}
	if err == nil && st != nfsclient.OK {
		err = fmt.Errorf("handle of %s: status %d", name, st)
	}
	return fh, err
}

// do makes an operation over NFS. After an error, what was sent may happen; what was not
// is errSaysNothing.
func (w *nfsWays) do(op *register) (out seen, err error) {
	c, err := w.conn(op.at)
	if err != nil {
		return out, errSaysNothing
	}
	switch op.kind {
	case "nfs read":
		out, err = w.read(c, op)
	case "nfs write":
		out, err = w.write(c, op)
	case "nfs remove":
		out, err = w.remove(c, op)
	}
	var st nfsStatus
	if err != nil && !errors.As(err, &st) {
		w.drop(op.at)
	}
	return out, err
}

// nfsStatus is the status of a call that failed.
type nfsStatus uint32

func (s nfsStatus) Error() string { return fmt.Sprintf("nfs: status %d", uint32(s)) }

// statusErr returns the error of a call.
func statusErr(st uint32, err error) error {
	if err == nil && st != nfsclient.OK {
		err = nfsStatus(st)
	}
	return err
}

func (w *nfsWays) read(c *nfsclient.Conn, op *register) (out seen, err error) {
	fh, err := w.lookup(c, op)
	if fh == nil {
		return out, err
	}
	st, b, err := c.Read(fh, 0, maxRegister)
	return seen{value: string(b)}, statusErr(st, err)
}

// lookup returns the handle of the file, nil if there is none.
func (w *nfsWays) lookup(c *nfsclient.Conn, op *register) (fh []byte, err error) {
	st, fh, err := c.Lookup(w.bucket, op.key)
	if err == nil && st == nfsclient.NoEnt {
		return nil, nil
	}
	return fh, statusErr(st, err)
}

// write writes over the beginning of a file that is there. Whether the name is still that of
// the file, nobody knows who does not find it after the write.
func (w *nfsWays) write(c *nfsclient.Conn, op *register) (out seen, err error) {
	fh, err := w.lookup(c, op)
	if fh == nil {
		return out, errors.Join(errSaysNothing, err)
	}
	st, err := c.Write(fh, 0, []byte(op.value))
	if err := statusErr(st, err); err != nil {
		return out, err
	}
	after, err := w.lookup(c, op)
	if err == nil && !bytes.Equal(after, fh) {
		err = nfsStatus(nfsclient.NoEnt)
	}
	return out, err
}

func (w *nfsWays) remove(c *nfsclient.Conn, op *register) (out seen, err error) {
	st, err := c.Remove(w.bucket, op.key)
	if err == nil && st == nfsclient.NoEnt {
		return seen{refused: true}, nil
	}
	return out, statusErr(st, err)
}

// dropEarly drops reads of what a write through the same gateway had not made durable by
// then: it is seen there from the moment it comes, and what follows counts from the reply.
func (n *nemesis) dropEarly() (dropped int) {
	type written struct {
		node *node
		by   int64
	}
	at := map[string]written{} // by the mark that each value begins with
	for _, op := range n.history {
		if in := op.Input.(register); strings.HasSuffix(in.kind, " write") {
			at[mark(in.value)] = written{in.at, op.Return}
		}
	}
	kept := n.history[:0]
	for _, op := range n.history {
		in, out := op.Input.(register), op.Output.(seen)
		if in.isRead() {
			if w, ok := at[mark(out.value)]; ok && w.node == in.at && (w.by == math.MaxInt64 || w.by > op.Return) {
				dropped++
				continue
			}
		}
		kept = append(kept, op)
	}
	n.history = kept
	return dropped
}

// mark returns what tells a value from all others: it goes up to the space.
func mark(value string) string {
	m, _, _ := strings.Cut(value, " ")
	return m
}
