package adversary

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

const (
	// readers that take no reply, and readersAsk calls of each: together over
	// twice all bytes of replies (96 MiB).
	readers, readersAsk = 8, 24
	// transfer is the largest READ, of the flood; victimTransfer is what the
	// victim reads, and sends: enough to need a part of the budgets.
	transfer, victimTransfer = 1 << 20, 64 << 10
	// halfRecords of 1 MiB: over all bytes of requests (96 MiB).
	halfRecords = 200
	// idleConns is the default of server.connections.
	idleConns = 4096
)

// floodServer has one file of 1 MiB in what everybody may mount.
func floodServer(t *testing.T) (s *testenv.Server, mine *nfsClient, file []byte) {
	t.Helper()
	s = newServer(t, testenv.ServerOptions{})
	s.OGW("bucket", "add", "data")
	mine = dialNFS(t, s, attacker)
	st, file, err := mine.Create(mine.mount("/data"), "file")
	mine.must("CREATE", st, err)
	st, err = mine.Write(file, 0, make([]byte, transfer))
	mine.must("WRITE", st, err)
	return s, mine, file
}

// caller returns a victim that repeats a call on one connection.
func caller(s *testenv.Server, call func(c *nfsclient.Conn) error) func(*testing.T) func() error {
	return func(t *testing.T) func() error {
		c := dialNFS(t, s, victim).Conn
		c.Timeout = giveUp
		return func() error { return call(c) }
	}
}

// TestNFSFloodOfReads: a client asks for far more than the server holds, on
// several connections, and takes nothing.
func TestNFSFloodOfReads(t *testing.T) {
	s, _, file := floodServer(t)
	read := func(c *nfsclient.Conn) error {
		st, data, err := c.Read(file, 0, victimTransfer)
		if err == nil && (st != nfsclient.OK || len(data) != victimTransfer) {
			err = fmt.Errorf("READ: status %d, %d bytes", st, len(data))
		}
		return err
	}
	withstands(t, caller(s, read), scene{Flood: "reads", NFS: s.NFS, File: file})
}

func floodOfReads(sc scene) (conns []net.Conn, err error) {
	for range readers {
		c, err := nfsclient.Dial(attacker, sc.NFS)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c.Net)
		c.Net.SetDeadline(time.Now().Add(giveUp))
		for range readersAsk {
			if err := c.Send(nfsclient.NFS, 3, nfsclient.ProcRead, nfsclient.ReadArgs(sc.File, 0, transfer)); err != nil {
				break // it is not even read any more
			}
		}
	}
	time.Sleep(time.Second) // the server makes what is asked for
	return conns, nil
}

// TestNFSFloodOfHalfRecords: a client begins many large calls and ends none.
func TestNFSFloodOfHalfRecords(t *testing.T) {
	s, _, _ := floodServer(t)
	args := make([]byte, victimTransfer)
	null := func(c *nfsclient.Conn) error {
		_, err := c.Call(nfsclient.NFS, 3, nfsclient.ProcNull, args)
		return err
	}
	withstands(t, caller(s, null), scene{Flood: "records", NFS: s.NFS})
}

func floodOfHalfRecords(sc scene) (conns []net.Conn, err error) {
	for range halfRecords {
		c, err := net.Dial("tcp", sc.NFS)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
		c.Write([]byte{0x80, 0x10, 0, 0, 1, 2, 3, 4}) // 1 MiB follows
	}
	time.Sleep(time.Second)
	return conns, nil
}

// TestNFSFloodOfConnections: a client has as many connections as there may be,
// and goes on connecting. Another one connects, calls and leaves.
func TestNFSFloodOfConnections(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < 2*idleConns+100 {
		t.Skipf("needs %d open files in the server (ulimit -n)", 2*idleConns+100)
	}
	s, _, _ := floodServer(t)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(victim)}, Timeout: giveUp}
	come := func() error {
		nc, err := from.Dial("tcp", s.NFS)
		if err != nil {
			return err
		}
		defer nc.Close()
		nc.(*net.TCPConn).SetLinger(0) // ports are not used up by waiting
		c := nfsclient.NewConn(nc)
		c.Timeout = giveUp
		_, err = c.Call(nfsclient.NFS, 3, nfsclient.ProcNull, nil)
		return err
	}
	withstands(t, func(*testing.T) func() error { return come }, scene{Flood: "connections", NFS: s.NFS})
}

func floodOfConnections(sc scene) (conns []net.Conn, err error) {
	for range idleConns {
		c, err := net.Dial("tcp", sc.NFS)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	go func() {
		for stay := map[net.Conn]bool{}; ; time.Sleep(10 * time.Millisecond) {
			if c, err := net.Dial("tcp", sc.NFS); err == nil {
				stay[c] = true
			}
		}
	}()
	return conns, nil
}
