package main

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"strings"
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
func (b *abBench) s3() error {
	var rows [2][]abRow
	for i, e := range []*env{b.base, b.head} {
		s, err := startServer(e)
		if err != nil {
			return err
		}
		defer s.stop()
		side := &s3Bench{env: e, s: s, sign: signed{addr: s.addr, creds: s.client.creds}}
		var done func()
		rows[i], done, err = side.abRows()
		defer done()
		if err != nil {
			return err
		}
	}
	return b.rows(rows[0], rows[1])
}

// abRows prepares what the rows need, and connects.
func (b *s3Bench) abRows() (rows []abRow, done func(), err error) {
	var closers []func()
	done = func() {
		for _, c := range closers {
			c()
		}
	}
	for _, bucket := range []string{"/bench", "/listed"} {
		if err := b.s.client.createBucket(b.ctx, b.s.url(bucket)); err != nil {
			return nil, done, err
		}
	}
	for i := range abListed {
		if err := b.once("PUT", fmt.Sprintf("/listed/key-%06d", i), nil, 0); err != nil {
			return nil, done, err
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
		rows = append(rows, abRow{name, g})
	}
	one := func(method, path string, body []byte, want int64) rawRequest {
		r, err := b.sign.request(method, path, body, want)
		if err != nil {
			failed = err
		}
		return r
	}
	for _, v := range []struct{ size, clients int }{{smallBytes, 1}, {smallBytes, abClients}, {mib, abLarge}} {
		body := make([]byte, v.size)
		rand.Read(body)
		path := "/bench/get-" + sizeName(v.size)
		if err := b.once("PUT", path, body, 0); err != nil {
			return rows, done, err
		}
		row(rowName("PUT", v.size, v.clients), v.clients, func(c int) (list []rawRequest) {
			for i := range keysPerClient {
				list = append(list, one("PUT", fmt.Sprintf("/bench/%s/%d/%d", sizeName(v.size), c, i), body, 0))
			}
			return list
		})
		row(rowName("GET", v.size, v.clients), v.clients, func(int) []rawRequest {
			return []rawRequest{one("GET", path, nil, int64(v.size))}
		})
	}
	row(rowName("HEAD", smallBytes, abClients), abClients, func(int) []rawRequest {
		return []rawRequest{one("HEAD", "/bench/get-4KiB", nil, smallBytes)}
	})
	row("S3 PUT and DELETE, empty, 16 clients", abClients, func(c int) []rawRequest {
		path := fmt.Sprintf("/bench/deleted-%d", c)
		return []rawRequest{one("PUT", path, nil, 0), one("DELETE", path, nil, 0)}
	})
	rows = append(rows, abRow{"S3 LIST, pages of 1000, 4 clients", gauge{pid: b.s.target().pid, run: b.lists}})
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
	var rows [2][]abRow
	for i, e := range []*env{b.base, b.head} {
		s, err := startNFS(e)
		if err != nil {
			return err
		}
		defer s.stop()
		list, err := libnfsRows(e, []*nfsServer{s})
		if err != nil {
			return err
		}
		for _, p := range list {
			if !strings.HasSuffix(p.name, "connections") {
				rows[i] = append(rows[i], abRow{p.name, p.figure})
			}
		}
	}
	return b.rows(rows[0], rows[1])
}

// abFuseScale is that of a turn: some tenths of a second for most figures.
var abFuseScale = fusebench.Scale{Files: 500, Listing: 10_000, Bytes: 64 << 20, Random: 1000, Parallel: 4}

// fuse measures mounts, by what the kernel offers.
func (b *abBench) fuse() error { return b.mounts("FUSE ") }

// device measures mounts through /dev/fuse.
func (b *abBench) device() error { return b.mounts("/dev/fuse ", "-o", "io_uring=off") }

func (b *abBench) mounts(prefix string, args ...string) error {
	defer keepSwitch()()
	var targets []fusebench.Target
	for _, e := range []*env{b.base, b.head} {
		s, err := startServer(e)
		if err != nil {
			return err
		}
		defer s.stop()
		if err := s.client.createBucket(e.ctx, s.url("/bench")); err != nil {
			return err
		}
		mnt, err := s.mount(args...)
		if err != nil {
			return err
		}
		defer s.umount(mnt)
		pid := s.cmd.Process.Pid
		targets = append(targets, fusebench.Target{Dir: filepath.Join(mnt, "bench"),
			CPU: func() (time.Duration, error) { return cpuClock(pid) }})
	}
	got, err := fusebench.Turns(targets, abFuseScale, b.head.rowsWanted, b.pairs, func() []int { return mathrand.Perm(2) })
	if err != nil || len(got[0]) == 0 {
		return err
	}
	for row, r := range got[0][0] {
		list := make([]pairs.Pair, b.pairs)
		for i := range list {
			base, head := got[0][i][row], got[1][i][row]
			list[i] = pairs.Pair{Base: pairs.Turn{Rate: base.Rate, CPU: base.CPU}, Head: pairs.Turn{Rate: head.Rate, CPU: head.CPU}}
		}
		b.add(prefix+r.Name, list)
	}
	return nil
}
