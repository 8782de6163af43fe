package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"path/filepath"
	"time"

	"ogw/integration/tools/bench/fusebench"
	"ogw/integration/tools/bench/pairs"
)

const (
	// abListed is how many keys the listed bucket has: one page.
	abListed = 1000
	// abClients is how many clients small requests come from, and abLarge
	// large ones: enough to keep a server busy, few enough for its clients.
	abClients = 16
	abLarge   = 4
)

// s3 measures requests of objects.
func (b *abBench) s3() error { return eachStart(b, s3Start, b.rows) }

// abServer starts a server over the folder that e has for all of its starts.
func abServer(e *env) (*server, error) { return startServerOn(e, filepath.Join(e.dir, "data")) }

func s3Start(e *env, first bool) ([]abRow, func(), error) {
	s, err := abServer(e)
	if err != nil {
		return nil, nil, err
	}
	b := &s3Bench{env: e, s: s, sign: signed{addr: s.addr, creds: s.client.creds}}
	if first {
		err = b.abFill()
	}
	rows, done, e2 := b.abRows()
	stop := func() {
		done()
		s.stop()
	}
	if err = errors.Join(err, e2, quiet(s.cmd.Process.Pid)); err != nil {
		stop()
		return nil, nil, err
	}
	return rows, stop, nil
}

// abSizes are the objects that are written and read, and by how many clients.
var abSizes = []struct{ size, clients int }{{smallBytes, 1}, {smallBytes, abClients}, {mib, abLarge}}

func abObject(size int) string { return "/bench/get-" + sizeName(size) }

// abFill makes what the rows need.
func (b *s3Bench) abFill() error {
	for _, bucket := range []string{"/bench", "/listed"} {
		if err := b.s.client.createBucket(b.ctx, b.s.url(bucket)); err != nil {
			return err
		}
	}
	for i := range abListed {
		if err := b.once("PUT", fmt.Sprintf("/listed/key-%06d", i), nil, 0); err != nil {
			return err
		}
	}
	for _, v := range abSizes {
		body := make([]byte, v.size)
		rand.Read(body)
		if err := b.once("PUT", abObject(v.size), body, 0); err != nil {
			return err
		}
	}
	return nil
}

// abRows are the rows, over connections that done closes.
func (b *s3Bench) abRows() (rows []abRow, done func(), err error) {
	var closers []func()
	done = func() {
		for _, c := range closers {
			c()
		}
	}
	var failed error
	row := func(name string, clients int, requests func(client int) []rawRequest) {
		if failed != nil {
			return
		}
		g, closeAll, err := b.httpLoad("S3", b.s.target(), clients, requests)
		if err != nil {
			failed = err
			return
		}
		closers = append(closers, closeAll)
		rows = append(rows, abRow{name: name, gauge: g})
	}
	one := func(method, path string, body []byte, want int64) rawRequest {
		r, err := b.sign.request(method, path, body, want)
		if err != nil {
			failed = err
		}
		return r
	}
	for _, v := range abSizes {
		row(rowName("GET", v.size, v.clients), v.clients, func(int) []rawRequest {
			return []rawRequest{one("GET", abObject(v.size), nil, int64(v.size))}
		})
	}
	row(rowName("HEAD", smallBytes, abClients), abClients, func(int) []rawRequest {
		return []rawRequest{one("HEAD", abObject(smallBytes), nil, smallBytes)}
	})
	rows = append(rows, abRow{name: "S3 LIST, pages of 1000, 4 clients", gauge: gauge{pid: b.s.target().pid, run: b.lists}})
	for _, v := range abSizes {
		body := make([]byte, v.size)
		rand.Read(body)
		row(rowName("PUT", v.size, v.clients), v.clients, func(c int) (list []rawRequest) {
			for i := range keysPerClient {
				list = append(list, one("PUT", fmt.Sprintf("/bench/%s/%d/%d", sizeName(v.size), c, i), body, 0))
			}
			return list
		})
	}
	row("S3 PUT and DELETE, empty, 16 clients", abClients, func(c int) []rawRequest {
		path := fmt.Sprintf("/bench/deleted-%d", c)
		return []rawRequest{one("PUT", path, nil, 0), one("DELETE", path, nil, 0)}
	})
	return rows, done, failed
}

// lists reads the first page of a bucket again and again.
func (b *s3Bench) lists(span time.Duration) (float64, error) {
	return b.parallel(abLarge, span, func(int, int) error {
		_, err := b.s.client.send(b.ctx, "GET", b.s.url("/listed?list-type=2"), nil)
		return err
	})
}

// nfs measures through libnfs, one connection.
func (b *abBench) nfs() error {
	bin, err := buildLibnfsload(b.sides[0])
	if err != nil {
		return err
	}
	return eachStart(b, func(e *env, first bool) (rows []abRow, stop func(), err error) {
		s, err := startNFSOn(e, e.dir)
		if err != nil {
			return nil, nil, err
		}
		if err = s.connect(bin); err == nil && first {
			err = s.fill()
		}
		if err = errors.Join(err, quiet(s.pid)); err != nil {
			s.stop()
			return nil, nil, err
		}
		for _, p := range nfsRows([]*nfsServer{s}, 1) {
			rows = append(rows, abRow{name: p.name, gauge: p.figure})
		}
		return rows, s.stop, nil
	}, b.rows)
}

// abFuseScale is that of a turn: some tenths of a second for most figures.
var abFuseScale = fusebench.Scale{Files: 500, Listing: 10_000, Bytes: 64 << 20, Random: 1000, Synced: 500, Parallel: 4}

// fuse measures mounts, by what the kernel offers.
func (b *abBench) fuse() error { return b.mounts("FUSE ") }

// device measures mounts through /dev/fuse.
func (b *abBench) device() error { return b.mounts("/dev/fuse ", "-o", "io_uring=off") }

func (b *abBench) mounts(prefix string, args ...string) error {
	defer keepSwitch()()
	return eachStart(b, func(e *env, first bool) (fusebench.Target, func(), error) { return mountStart(e, first, args) },
		func(targets [2]fusebench.Target) error {
			// These turns are long enough for one pair; the first is the warm-up.
			got, err := fusebench.Turns(targets[:], abFuseScale, b.rowsWanted, 2, func() []int { return mathrand.Perm(2) })
			if err != nil || len(got[0]) == 0 {
				return err
			}
			base, head := got[0][1], got[1][1]
			for i, r := range base {
				if r.Rate == 0 || math.IsNaN(r.Rate) {
					return fmt.Errorf("%s: nothing was done", r.Name)
				}
				b.keep(prefix+r.Name, 0, pairs.Start{{
					Base: pairs.Turn{Rate: r.Rate, CPU: r.CPU}, Head: pairs.Turn{Rate: head[i].Rate, CPU: head[i].CPU}}})
			}
			return nil
		})
}

func mountStart(e *env, first bool, args []string) (t fusebench.Target, stop func(), err error) {
	s, err := abServer(e)
	if err != nil {
		return t, nil, err
	}
	if first {
		err = s.client.createBucket(e.ctx, s.url("/bench"))
	}
	var mnt string
	if err == nil {
		mnt, err = s.mount(args...)
	}
	if err != nil {
		s.stop()
		return t, nil, err
	}
	pid := s.cmd.Process.Pid
	t = fusebench.Target{Dir: filepath.Join(mnt, "bench"), CPU: func() (time.Duration, error) { return cpuClock(pid) }}
	return t, func() {
		s.umount(mnt)
		s.stop()
	}, nil
}
