package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"

	"ogw/integration/tools/bench/nfsclient"
)

const (
	nfsTransfer = mib
	nfsDepth    = 8   // calls of 1 MiB in flight, on all connections
	smallDepth  = 120 // small calls in flight, on all connections
	nfsFile     = 256 * mib
	nfsFresh    = 512 * mib // is written before each turn
	nfsPages    = 64 * mib  // a file of which pages are written and made durable one at a time
	listEntries = 100_000
	statFiles   = 10_000
	// manyConnections is what a client with several of them has (nconnect).
	manyConnections = 4
	// listBytes is what kernels ask a READDIRPLUS to answer at the most.
	listBytes = 64 * kib
	// portmapperAddr is where nfs-ganesha looks for one (RFC 1833).
	portmapperAddr = "127.0.0.1:111"
)

// nfsSuite measures the NFS gateway beside nfs-ganesha with its VFS back end
// on the same disk, both through libnfs. What ganesha answers to CREATE and
// REMOVE is in its kernel's memory; what ogw answers is on the disk.
func nfsSuite(e *env) error {
	own, err := startNFS(e)
	if err != nil {
		return err
	}
	defer own.stop()
	peers := []*nfsServer{own}
	if err := ganeshaFits(); err != nil {
		fmt.Printf("  nfs-ganesha is left out: %v; make bench-nfs has it\n", err)
	} else {
		g, err := startGanesha(e)
		if err != nil {
			return err
		}
		defer g.stop()
		peers = append(peers, g)
	}
	rows, err := libnfsRows(e, peers)
	if err != nil {
		return err
	}
	echo, err := startEcho()
	if err != nil {
		return err
	}
	defer echo.stop()
	for _, p := range append(rows, echoRow(own, echo)) {
		if err := e.measure(p); err != nil {
			return err
		}
	}
	return nil
}

// ganeshaFits reports what nfs-ganesha lacks here: it does not start without a
// portmapper.
func ganeshaFits() error {
	if _, err := exec.LookPath("ganesha.nfsd"); err != nil {
		return errors.New("it is not installed")
	}
	conn, err := net.DialTimeout("tcp", portmapperAddr, time.Second)
	if err != nil {
		return errors.New("no rpcbind runs")
	}
	return conn.Close()
}

// libnfsRows connects to the servers with libnfs and makes what the rows
// read. There are none without the library.
func libnfsRows(e *env, peers []*nfsServer) ([]pair, error) {
	bin, err := buildLibnfsload(e)
	if err != nil {
		fmt.Printf("  the rows through libnfs are left out: %v; make bench-nfs has them\n", err)
		return nil, nil
	}
	for _, s := range peers {
		err := s.connect(bin)
		if err == nil {
			err = s.fill()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return append(nfsRows(peers, 1), nfsRows(peers, manyConnections)...), nil
}

// nfsRows are the figures through so many connections; a peer is the limit to
// be ahead of.
func nfsRows(peers []*nfsServer, connections int) []pair {
	row := func(name string, bytes int, gauge func(s *nfsServer, connections int) gauge) pair {
		p := pair{name: "NFS " + name, bytes: bytes, target: 1}
		if connections > 1 {
			p.name += fmt.Sprintf(", %d connections", connections)
		}
		for i, s := range peers {
			g := gauge(s, connections)
			g.name, g.pid, g.client = s.name, s.pid, s.load.cmd.Process.Pid
			if i == 0 {
				p.figure = g
			} else {
				p.limits = append(p.limits, g)
			}
		}
		return p
	}
	// Rows that write come last: a server goes on with what was written.
	return []pair{
		row("sequential read, 1 MiB", nfsTransfer, (*nfsServer).reads),
		row("first read of a fresh file, 1 MiB", nfsTransfer, (*nfsServer).firstReads),
		row("random read, 4 KiB", smallBytes, (*nfsServer).randomReads),
		row("stat: LOOKUP, LOOKUP, GETATTR", 0, (*nfsServer).stats),
		row("GETATTR", 0, (*nfsServer).getattrs),
		row("LOOKUP", 0, (*nfsServer).lookups),
		row(fmt.Sprintf("READDIRPLUS of %d entries", listEntries), 0, (*nfsServer).lists),
		row(fmt.Sprintf("opendir of %d entries", listEntries), 0, (*nfsServer).opendirs),
		row(fmt.Sprintf("write 4 KiB, FILE_SYNC, %d in flight", connections), smallBytes, durable(connections)),
		row("write 4 KiB, FILE_SYNC, 16 in flight", smallBytes, durable(16)),
		row("write 4 KiB, FILE_SYNC, 64 in flight", smallBytes, durable(64)),
		row("sequential write, 1 MiB, then COMMIT", nfsTransfer, (*nfsServer).writes),
		row("create", 0, (*nfsServer).creates),
		row("unlink", 0, (*nfsServer).unlinks),
	}
}

// connect starts the client of the rows.
func (s *nfsServer) connect(bin string) (err error) {
	s.made = statFiles
	s.load, err = startLibnfsload(bin, s.url, manyConnections)
	return err
}

// fill makes what the rows read.
func (s *nfsServer) fill() error {
	for _, name := range []string{"dir", "listed"} {
		if _, err := s.load.do("mkdir", name); err != nil {
			return err
		}
	}
	for name, size := range map[string]int{"file": nfsFile, "pages": nfsPages} {
		_, err := s.load.do("write", name, fmt.Sprintf("bytes=%d limit=%d depth=%d", nfsTransfer, size/nfsTransfer, nfsDepth))
		if err != nil {
			return err
		}
	}
	return errors.Join(s.createMany("listed", 0, listEntries), s.createMany("dir", 0, statFiles))
}

func (s *nfsServer) createMany(dir string, from, n int) error {
	_, err := s.load.do("create", dir, fmt.Sprintf("first=%d limit=%d depth=%d", from, n, smallDepth))
	return err
}

func (s *nfsServer) removeMany(from, n int) error {
	if n == 0 {
		return nil // no limit is none
	}
	_, err := s.load.do("unlink dir", fmt.Sprintf("first=%d limit=%d depth=%d", from, n, smallDepth))
	return err
}

// timed does a job for the span through so many connections, with depth calls
// in flight on all of them.
func (s *nfsServer) timed(job string, connections, depth int, span time.Duration) (loadResult, error) {
	return s.load.do(job, fmt.Sprintf("connections=%d depth=%d seconds=%f", connections, max(1, depth/connections), span.Seconds()))
}

// gauge is one of a job that leaves nothing behind.
func (s *nfsServer) gauge(job string, connections, depth int) gauge {
	return gauge{run: func(span time.Duration) (float64, error) {
		r, err := s.timed(job, connections, depth, span)
		return r.rate(), err
	}}
}

func (s *nfsServer) writes(connections int) gauge {
	g := s.gauge(fmt.Sprintf("write written bytes=%d", nfsTransfer), connections, nfsDepth)
	g.after = func() error {
		_, err := s.load.do("remove written")
		return err
	}
	return g
}

func (s *nfsServer) reads(connections int) gauge {
	return s.gauge(fmt.Sprintf("read file bytes=%d count=%d", nfsTransfer, nfsFile/nfsTransfer), connections, nfsDepth)
}

// firstReads reads once what was written a moment ago.
func (s *nfsServer) firstReads(connections int) gauge {
	const count = nfsFresh / nfsTransfer
	g := gauge{run: func(time.Duration) (float64, error) {
		r, err := s.load.do(fmt.Sprintf("read fresh bytes=%d count=%d limit=%d", nfsTransfer, count, count),
			fmt.Sprintf("connections=%d depth=%d", connections, max(1, nfsDepth/connections)))
		return r.rate(), err
	}}
	g.before = func(time.Duration) error {
		_, err := s.load.do("write", "fresh", fmt.Sprintf("bytes=%d limit=%d depth=%d", nfsTransfer, count, nfsDepth))
		return err
	}
	g.after = func() error {
		_, err := s.load.do("remove fresh")
		return err
	}
	return g
}

func (s *nfsServer) randomReads(connections int) gauge {
	return s.gauge(fmt.Sprintf("randomread file bytes=%d count=%d", smallBytes, nfsFile/smallBytes), connections, smallDepth)
}

// durable writes pages of a file at random, so many at a time, each of which is on
// the disk when it is answered.
func durable(depth int) func(s *nfsServer, connections int) gauge {
	return func(s *nfsServer, connections int) gauge {
		return s.gauge(fmt.Sprintf("syncwrite pages bytes=%d count=%d", smallBytes, nfsPages/smallBytes), connections, depth)
	}
}

func (s *nfsServer) creates(connections int) gauge {
	created := 0
	return gauge{
		run: func(span time.Duration) (float64, error) {
			r, err := s.timed(fmt.Sprintf("create dir first=%d", s.made), connections, smallDepth, span)
			created = r.Ops
			return r.rate(), err
		},
		after: func() error {
			from := s.made
			s.made += created
			return s.removeMany(from, created)
		},
	}
}

func (s *nfsServer) stats(connections int) gauge {
	return s.gauge(fmt.Sprintf("stat dir count=%d", statFiles), connections, smallDepth)
}

func (s *nfsServer) getattrs(connections int) gauge {
	return s.gauge("getattr file", connections, smallDepth)
}

func (s *nfsServer) lookups(connections int) gauge {
	return s.gauge(fmt.Sprintf("lookup dir count=%d", statFiles), connections, smallDepth)
}

// unlinkRate is about what servers reach; so many files are made before. A turn that
// has removed all of them ends earlier.
const unlinkRate = 15_000

func (s *nfsServer) unlinks(connections int) gauge {
	var made, removed int
	return gauge{
		before: func(span time.Duration) error {
			made = int(unlinkRate * span.Seconds())
			return s.createMany("dir", s.made, made)
		},
		run: func(span time.Duration) (float64, error) {
			r, err := s.timed(fmt.Sprintf("unlink dir first=%d limit=%d", s.made, made), connections, smallDepth, span)
			removed = r.Ops
			return r.rate(), err
		},
		after: func() error {
			from := s.made + removed
			s.made += made
			return s.removeMany(from, made-removed)
		},
	}
}

// lists reads the directory as kernels do: each connection the whole of it,
// one call after the other, as each needs the cookie of the one before.
func (s *nfsServer) lists(connections int) gauge {
	return s.gauge(fmt.Sprintf("list listed bytes=%d", listBytes), connections, connections)
}

// opendirs reads it as libnfs does, 8 KiB a call.
func (s *nfsServer) opendirs(connections int) gauge {
	return s.gauge("opendir listed", connections, connections)
}

// echoRow is small requests beside an RPC server that does nothing, through a
// client that costs less than libnfs.
func echoRow(own, echo *nfsServer) pair {
	run := func(s *nfsServer, proc uint32, args []byte) gauge {
		return gauge{name: s.name, pid: s.pid, run: func(span time.Duration) (float64, error) {
			begin := time.Now()
			n, err := s.client.Run(proc, smallDepth, func(int) []byte {
				if time.Since(begin) > span {
					return nil
				}
				return args
			})
			return float64(n) / time.Since(begin).Seconds(), err
		}}
	}
	return pair{
		name: "NFS GETATTR beside RPC echo", target: 0.6,
		figure: run(own, nfsclient.Getattr, nfsclient.HandleArgs(own.client.Root)),
		limits: []gauge{run(echo, nfsclient.Null, make([]byte, getattrBytes))},
	}
}

// getattrBytes is what the arguments of a GETATTR take: a handle.
const getattrBytes = 4 + 36
