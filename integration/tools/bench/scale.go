package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	scaleKeys = flag.Int("scale", 0, "how many objects the suite scale holds in one bucket; 0 leaves it out")
	scaleDir  = flag.String("scaledata", "", "keep the data of the suite scale in this folder, and use what is there")
)

const (
	// scaleWarm is how many objects a working set has: what they need of the
	// metadata fits into the cache, however many objects lie between them.
	scaleWarm = 10_000
	// scaleShrink is how many times fewer objects the other bucket holds.
	scaleShrink = 100
	// scaleKept is the share of a rate that a hundred times more objects
	// leave.
	scaleKept = 0.8
	// scaleRestart is the longest start after a kill, in seconds.
	scaleRestart = 2
	// scaleMemory is the largest resident set, in MiB.
	scaleMemory = 2048
	// scaleRequests is how many requests are signed ahead for one figure:
	// about as many as there is time for, so that keys seldom come twice.
	scaleRequests = 96_000
)

// scaleMount are options of a mount where every look asks the server.
const scaleMount = "entry_timeout=0,attr_timeout=0"

// scaleSide is one of the two servers that are compared.
type scaleSide struct {
	*env
	s    *server
	sign signed
	data string
	keys int
	mnt  string
	rand *rand.Rand
	made int // objects made by put, which need names of their own
}

// scaleSuite compares a bucket with many small objects with one that has a
// hundredth of them, in turns.
func scaleSuite(e *env) error {
	if *scaleKeys == 0 {
		fmt.Println("  left out: -scale N asks for it")
		return nil
	}
	if *scaleKeys < scaleWarm {
		return fmt.Errorf("-scale must be at least %d", scaleWarm)
	}
	few, err := newScaleSide(e, max(*scaleKeys/scaleShrink, scaleWarm))
	if err != nil {
		return err
	}
	defer few.stop()
	many, err := newScaleSide(e, *scaleKeys)
	if err != nil {
		return err
	}
	defer many.stop()
	for _, m := range []struct {
		name string
		load func(*scaleSide) (scaleLoad, error)
	}{
		{"S3 GET 100 B, 16 clients, working set", func(s *scaleSide) (scaleLoad, error) { return s.read("GET", s.warmKey) }},
		{"S3 HEAD 100 B, 16 clients, working set", func(s *scaleSide) (scaleLoad, error) { return s.read("HEAD", s.warmKey) }},
		{"FUSE stat, 4 threads, working set", func(s *scaleSide) (scaleLoad, error) { return s.stat(scaleWarm) }},
		{"S3 GET 100 B, 16 clients, anywhere", func(s *scaleSide) (scaleLoad, error) { return s.read("GET", s.key) }},
		{"S3 HEAD 100 B, 16 clients, anywhere", func(s *scaleSide) (scaleLoad, error) { return s.read("HEAD", s.key) }},
		{"FUSE stat, 4 threads, anywhere", func(s *scaleSide) (scaleLoad, error) { return s.stat(s.keys) }},
		{"S3 LIST of a page of 1000, 4 clients, anywhere", (*scaleSide).list},
		{"S3 PUT 100 B, 16 clients", (*scaleSide).put},
	} {
		if err := compareSides(few, many, m.name, m.load); err != nil {
			return err
		}
	}
	if err := many.memory(); err != nil {
		return err
	}
	return many.restart("under load")
}

// scaleLoad is a rate that is measured again and again, and what ends it.
type scaleLoad struct {
	run  func(span time.Duration) (float64, error)
	done func()
}

func compareSides(few, many *scaleSide, name string, load func(*scaleSide) (scaleLoad, error)) error {
	full := name + ", " + count(many.keys)
	if !many.rowsWanted.MatchString(full) {
		return nil
	}
	var gauges []gauge
	for _, side := range []*scaleSide{few, many} {
		l, err := load(side)
		if err != nil {
			return err
		}
		defer l.done()
		if _, err := l.run(side.span() / rounds); err != nil { // what is cold at first is not what is measured
			return err
		}
		gauges = append(gauges, gauge{name: "the same with " + count(side.keys), pid: side.s.cmd.Process.Pid, run: l.run})
	}
	many.measured = many.data // whose profiles are kept
	return many.measure(pair{name: full, figure: gauges[1], limits: gauges[:1], target: scaleKept})
}

func count(n int) string {
	if n >= 1e6 {
		return fmt.Sprintf("%g million", float64(n)/1e6)
	}
	return strconv.Itoa(n)
}

// newScaleSide fills a bucket, or takes the one that is there, and starts a
// server with a mount over it, after a kill.
func newScaleSide(e *env, keys int) (*scaleSide, error) {
	dir := *scaleDir
	if dir == "" {
		dir = e.dir
	}
	side := &scaleSide{env: e, data: filepath.Join(dir, strconv.Itoa(keys)), keys: keys,
		rand: rand.New(rand.NewPCG(uint64(keys), uint64(time.Now().UnixNano())))}
	if _, err := os.Stat(side.data); errors.Is(err, os.ErrNotExist) {
		begin := time.Now()
		if err := fill(e.ctx, side.data, "flat", keys); err != nil {
			return nil, err
		}
		e.add(row{Name: "Go API, PUT of 100 bytes, not synced, " + count(keys), Unit: "op/s",
			Value: float64(keys) / time.Since(begin).Seconds()})
	} else if err != nil {
		return nil, err
	}
	if err := side.start(); err != nil {
		return nil, err
	}
	return side, side.restart("idle")
}

func (s *scaleSide) start() (err error) {
	if s.s, err = startServerOn(s.env, s.data); err != nil {
		return err
	}
	s.sign = signed{addr: s.s.addr, creds: s.s.client.creds}
	if s.mnt, err = s.s.mount("-o", scaleMount); err != nil {
		s.s.stop()
	}
	return err
}

func (s *scaleSide) stop() {
	s.s.umount(s.mnt)
	s.s.stop()
}

// restart kills the server and measures how long the next takes to answer.
func (s *scaleSide) restart(when string) error {
	s.s.umount(s.mnt)
	if err := s.s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = s.s.cmd.Wait()
	begin := time.Now()
	next, err := startServerOn(s.env, s.data)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	s.s, s.sign.addr = next, next.addr
	s.add(row{Name: fmt.Sprintf("start after a kill, %s, %s", when, count(s.keys)), Value: took, Unit: "s",
		Limit: scaleRestart, LimitName: fmt.Sprintf("%d s", scaleRestart), Target: 1})
	s.mnt, err = s.s.mount("-o", scaleMount)
	return err
}

// memory adds the largest resident set since the start.
func (s *scaleSide) memory() error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.s.cmd.Process.Pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "VmHWM:" {
			continue
		}
		kib, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			return err
		}
		s.add(row{Name: "largest resident set, " + count(s.keys), Value: kib / 1024, Unit: "MiB",
			Limit: scaleMemory, LimitName: fmt.Sprintf("%d MiB", scaleMemory), Target: 1})
		return nil
	}
	return errors.New("no VmHWM")
}

// key returns a random key of the bucket.
func (s *scaleSide) key() string { return keyName(s.rand.IntN(s.keys)) }

// warmKey returns a random one of scaleWarm keys all over the bucket.
func (s *scaleSide) warmKey() string { return keyName(s.rand.IntN(scaleWarm) * (s.keys / scaleWarm)) }

func keyName(i int) string { return fmt.Sprintf("key-%09d", i) }

// requests prepares clients connections and a list of requests for each,
// which the rounds go on with where the one before ended.
func (s *scaleSide) requests(clients int, next func() (rawRequest, error)) (l scaleLoad, err error) {
	conns := make([]*rawConn, clients)
	lists := make([][]rawRequest, clients)
	sent := make([]int, clients)
	l.done = func() {
		for _, c := range conns {
			if c != nil {
				c.close()
			}
		}
	}
	defer func() {
		if err != nil {
			l.done()
		}
	}()
	for c := range clients {
		if conns[c], err = dialRaw(s.ctx, s.s.addr); err != nil {
			return l, err
		}
		lists[c] = make([]rawRequest, scaleRequests/clients)
		for i := range lists[c] {
			if lists[c][i], err = next(); err != nil {
				return l, err
			}
		}
	}
	l.run = func(span time.Duration) (float64, error) {
		return s.parallel(clients, span, func(c, _ int) error {
			sent[c]++
			return conns[c].do(&lists[c][sent[c]%len(lists[c])], nil)
		})
	}
	return l, nil
}

// read looks at one object after the other.
func (s *scaleSide) read(method string, key func() string) (scaleLoad, error) {
	return s.requests(16, func() (rawRequest, error) { return s.sign.request(method, "/flat/"+key(), nil, 100) })
}

func (s *scaleSide) list() (scaleLoad, error) {
	return s.requests(4, func() (rawRequest, error) {
		return s.sign.request("GET", "/flat?list-type=2&start-after="+s.key(), nil, -1)
	})
}

// put makes objects with names of their own, all over the bucket.
func (s *scaleSide) put() (scaleLoad, error) {
	body := make([]byte, 100)
	return s.requests(16, func() (rawRequest, error) {
		s.made++
		return s.sign.request("PUT", fmt.Sprintf("/flat/%s-%d", s.key(), s.made), body, 0)
	})
}

// stat looks at n files all over the bucket, of which the kernel remembers
// nothing (scaleMount).
func (s *scaleSide) stat(n int) (scaleLoad, error) {
	const threads = 4
	seeds := make([]*rand.Rand, threads)
	for i := range seeds {
		seeds[i] = rand.New(rand.NewPCG(s.rand.Uint64(), 0))
	}
	dir := filepath.Join(s.mnt, "flat")
	return scaleLoad{done: func() {}, run: func(span time.Duration) (float64, error) {
		return s.parallel(threads, span, func(c, _ int) error {
			var st syscall.Stat_t
			return syscall.Lstat(filepath.Join(dir, keyName(seeds[c].IntN(n)*(s.keys/n))), &st)
		})
	}}, nil
}
