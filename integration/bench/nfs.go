package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os/exec"
	"time"

	"ogw/integration/bench/nfsclient"
)

const (
	nfsTransfer = mib
	nfsDepth    = 8   // calls of 1 MiB in flight
	smallDepth  = 120 // small calls in flight
	nfsFile     = 256 * mib
	listEntries = 100_000
	statFiles   = 10_000
	// portmapperAddr is where nfs-ganesha looks for one (RFC 1833).
	portmapperAddr = "127.0.0.1:111"
)

// nfsSuite measures the NFS gateway beside nfs-ganesha with its VFS back end
// on the same disk, through the same client. What ganesha answers to CREATE
// and REMOVE is in its kernel's memory; what ogw answers is on the disk.
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
	for _, s := range peers {
		if err := s.prepare(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	echo, err := startEcho()
	if err != nil {
		return err
	}
	defer echo.stop()
	for _, p := range nfsRows(peers, echo) {
		if err := e.measure(p); err != nil {
			return err
		}
	}
	return nil
}

// ganeshaFits tells what nfs-ganesha lacks here: it does not start without a
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

// nfsRows are the figures; a peer is the limit to be ahead of.
func nfsRows(peers []*nfsServer, echo *nfsServer) []pair {
	row := func(name string, bytes int, run func(*nfsServer, time.Duration) (float64, error)) pair {
		p := pair{name: "NFS " + name, bytes: bytes, target: 1}
		for i, s := range peers {
			g := gauge{name: s.name, pid: s.pid, run: func(d time.Duration) (float64, error) { return run(s, d) }}
			if i == 0 {
				p.figure = g
			} else {
				p.limits = append(p.limits, g)
			}
		}
		return p
	}
	echoed := row("GETATTR beside RPC echo", 0, (*nfsServer).getattr)
	echoed.limits = []gauge{{name: echo.name, pid: echo.pid, run: echo.null}}
	echoed.target = 0.6
	return []pair{
		row("sequential write, 1 MiB, then COMMIT", nfsTransfer, (*nfsServer).write),
		row("sequential read, 1 MiB", nfsTransfer, (*nfsServer).read),
		row("random read, 4 KiB", smallBytes, (*nfsServer).randomRead),
		row("create", 0, (*nfsServer).create),
		row("stat: GETATTR", 0, (*nfsServer).getattr),
		row("stat: LOOKUP", 0, (*nfsServer).lookup),
		row("unlink", 0, (*nfsServer).unlink),
		row(fmt.Sprintf("READDIRPLUS of %d entries", listEntries), 0, (*nfsServer).list),
		echoed,
	}
}

func fileName(i int) string { return fmt.Sprintf("file-%08d", i) }

// prepare makes what the rows read.
func (s *nfsServer) prepare() error {
	var errs [3]error
	s.dir, errs[0] = s.client.Mkdir(s.client.Root, "dir")
	s.listed, errs[1] = s.client.Mkdir(s.client.Root, "listed")
	s.file, errs[2] = s.client.Create(s.client.Root, "file")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := s.fill(s.file, nfsFile); err != nil {
		return err
	}
	if err := s.createMany(s.listed, listEntries, 0); err != nil {
		return err
	}
	s.made = statFiles
	return s.createMany(s.dir, statFiles, 0)
}

func (s *nfsServer) createMany(dir []byte, n, from int) error {
	_, err := s.client.Run(nfsclient.Create, smallDepth, func(i int) []byte {
		if i == n {
			return nil
		}
		return nfsclient.CreateArgs(dir, fileName(from+i))
	})
	return err
}

// fill writes size bytes at random and commits them.
func (s *nfsServer) fill(file []byte, size int) error {
	data := make([]byte, nfsTransfer)
	rand.Read(data)
	_, err := s.client.Run(nfsclient.Write, nfsDepth, func(i int) []byte {
		if i*nfsTransfer == size {
			return nil
		}
		return nfsclient.WriteArgs(file, uint64(i)*nfsTransfer, data)
	})
	return errors.Join(err, s.commit(file))
}

func (s *nfsServer) commit(file []byte) error {
	_, err := s.client.Commit(file)
	return err
}

// run keeps depth calls in flight for the span, then does last, and returns
// calls a second.
func (s *nfsServer) run(proc uint32, depth int, span time.Duration, args func(i int) []byte, last func() error) (float64, error) {
	begin := time.Now()
	n, err := s.client.Run(proc, depth, func(i int) []byte {
		if time.Since(begin) > span {
			return nil
		}
		return args(i)
	})
	if err == nil && last != nil {
		err = last()
	}
	return float64(n) / time.Since(begin).Seconds(), err
}

func (s *nfsServer) write(span time.Duration) (float64, error) {
	name := fileName(s.made)
	s.made++
	file, err := s.client.Create(s.client.Root, name)
	if err != nil {
		return 0, err
	}
	data := make([]byte, nfsTransfer)
	rand.Read(data)
	v, err := s.run(nfsclient.Write, nfsDepth, span, func(i int) []byte {
		return nfsclient.WriteArgs(file, uint64(i)*nfsTransfer, data)
	}, func() error { return s.commit(file) })
	if err != nil {
		return 0, err
	}
	_, err = s.client.Run(nfsclient.Remove, 1, once(nfsclient.NameArgs(s.client.Root, name)))
	return v, err
}

// once gives arguments for one call.
func once(args []byte) func(int) []byte {
	return func(i int) []byte {
		if i > 0 {
			return nil
		}
		return args
	}
}

func (s *nfsServer) read(span time.Duration) (float64, error) {
	return s.run(nfsclient.Read, nfsDepth, span, func(i int) []byte {
		return nfsclient.ReadArgs(s.file, uint64(i)*nfsTransfer%nfsFile, nfsTransfer)
	}, nil)
}

func (s *nfsServer) randomRead(span time.Duration) (float64, error) {
	return s.run(nfsclient.Read, smallDepth, span, func(int) []byte {
		return nfsclient.ReadArgs(s.file, uint64(mathrand.IntN(nfsFile/smallBytes))*smallBytes, smallBytes)
	}, nil)
}

func (s *nfsServer) create(span time.Duration) (float64, error) {
	from := s.made
	v, err := s.run(nfsclient.Create, smallDepth, span, func(int) []byte {
		s.made++
		return nfsclient.CreateArgs(s.dir, fileName(s.made-1))
	}, nil)
	if err != nil {
		return 0, err
	}
	return v, s.removeMany(from, s.made-from)
}

func (s *nfsServer) removeMany(from, n int) error {
	_, err := s.client.Run(nfsclient.Remove, smallDepth, func(i int) []byte {
		if i == n {
			return nil
		}
		return nfsclient.NameArgs(s.dir, fileName(from+i))
	})
	return err
}

func (s *nfsServer) getattr(span time.Duration) (float64, error) {
	args := nfsclient.HandleArgs(s.file)
	return s.run(nfsclient.Getattr, smallDepth, span, func(int) []byte { return args }, nil)
}

func (s *nfsServer) null(span time.Duration) (float64, error) {
	args := make([]byte, 44) // those of a GETATTR
	return s.run(nfsclient.Null, smallDepth, span, func(int) []byte { return args }, nil)
}

func (s *nfsServer) lookup(span time.Duration) (float64, error) {
	return s.run(nfsclient.Lookup, smallDepth, span, func(int) []byte {
		return nfsclient.NameArgs(s.dir, fileName(mathrand.IntN(statFiles)))
	}, nil)
}

// unlinkRate is above what any server reaches; so many files are made before.
const unlinkRate = 20_000

func (s *nfsServer) unlink(span time.Duration) (float64, error) {
	n, from := int(unlinkRate*span.Seconds()), s.made
	s.made += n
	if err := s.createMany(s.dir, n, from); err != nil {
		return 0, err
	}
	done := 0
	begin := time.Now()
	v, err := s.run(nfsclient.Remove, smallDepth, span, func(i int) []byte {
		if i == n {
			return nil
		}
		done = i + 1
		return nfsclient.NameArgs(s.dir, fileName(from+i))
	}, nil)
	if err == nil && done == n {
		v = float64(n) / time.Since(begin).Seconds()
	}
	if err != nil {
		return 0, err
	}
	return v, s.removeMany(from+done, n-done)
}

// listBytes is what clients ask a READDIRPLUS to answer at the most.
const listBytes = 64 * kib

func (s *nfsServer) list(span time.Duration) (float64, error) {
	begin, entries := time.Now(), 0
	for time.Since(begin) < span {
		n, err := s.client.List(s.listed, listBytes)
		if err != nil {
			return 0, err
		}
		if n < listEntries {
			return 0, fmt.Errorf("%s lists %d entries of %d", s.name, n, listEntries)
		}
		entries += n
	}
	return float64(entries) / time.Since(begin).Seconds(), nil
}
