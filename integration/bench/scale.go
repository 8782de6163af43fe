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
	// scaleShrink is how many times fewer objects the other bucket holds.
	scaleShrink = 100
	// scaleKept is the share of a rate that a hundred times more objects
	// leave.
	scaleKept = 0.8
	// scaleRestart is the longest start after a kill, in seconds.
	scaleRestart = 2
	// scaleMemory is the largest resident set, in MiB.
	scaleMemory = 2048
	// scaleRequests is how many requests a round has ready for each client:
	// more than it takes, so that no key comes twice.
	scaleRequests = 4000
)

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
	few, err := newScaleSide(e, max(*scaleKeys/scaleShrink, 1000))
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
		rate func(*scaleSide, time.Duration) (float64, error)
	}{
		{"S3 GET 100 B, 16 clients", (*scaleSide).get},
		{"S3 HEAD 100 B, 16 clients", (*scaleSide).head},
		{"S3 LIST of a page of 1000, 4 clients", (*scaleSide).list},
		{"FUSE stat, 4 threads", (*scaleSide).stat},
		{"S3 PUT 100 B, 16 clients", (*scaleSide).put},
	} {
		err := e.measure(pair{
			name:   m.name + ", " + count(many.keys),
			figure: many.gauge(m.name, m.rate),
			limits: []gauge{few.gauge("the same with "+count(few.keys), m.rate)},
			target: scaleKept,
		})
		if err != nil {
			return err
		}
	}
	if err := many.memory(); err != nil {
		return err
	}
	return many.restart("under load")
}

func (s *scaleSide) gauge(name string, rate func(*scaleSide, time.Duration) (float64, error)) gauge {
	return gauge{name: name, pid: s.s.cmd.Process.Pid,
		run: func(span time.Duration) (float64, error) { return rate(s, span) }}
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
	if s.mnt, err = s.s.mount(); err != nil {
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
	s.s.cmd.Wait()
	begin := time.Now()
	next, err := startServerOn(s.env, s.data)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	s.s, s.sign.addr = next, next.addr
	s.add(row{Name: fmt.Sprintf("start after a kill, %s, %s", when, count(s.keys)), Value: took, Unit: "s",
		Limit: scaleRestart, LimitName: fmt.Sprintf("%d s", scaleRestart), Target: 1})
	s.mnt, err = s.s.mount()
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
func (s *scaleSide) key() string { return fmt.Sprintf("key-%09d", s.rand.IntN(s.keys)) }

// requests makes a list of requests for each client, outside of the time
// that is measured.
func (s *scaleSide) requests(clients int, next func() (rawRequest, error)) ([][]rawRequest, error) {
	lists := make([][]rawRequest, clients)
	for c := range lists {
		for range scaleRequests {
			r, err := next()
			if err != nil {
				return nil, err
			}
			lists[c] = append(lists[c], r)
		}
	}
	return lists, nil
}

func (s *scaleSide) load(span time.Duration, clients int, next func() (rawRequest, error)) (float64, error) {
	lists, err := s.requests(clients, next)
	if err != nil {
		return 0, err
	}
	g, done, err := s.httpLoad("S3", s.s.target(), clients, func(client int) []rawRequest { return lists[client] })
	if err != nil {
		return 0, err
	}
	defer done()
	return g.run(span)
}

func (s *scaleSide) get(span time.Duration) (float64, error) {
	return s.load(span, 16, func() (rawRequest, error) { return s.sign.request("GET", "/flat/"+s.key(), nil, 100) })
}

func (s *scaleSide) head(span time.Duration) (float64, error) {
	return s.load(span, 16, func() (rawRequest, error) { return s.sign.request("HEAD", "/flat/"+s.key(), nil, 100) })
}

func (s *scaleSide) list(span time.Duration) (float64, error) {
	return s.load(span, 4, func() (rawRequest, error) {
		return s.sign.request("GET", "/flat?list-type=2&start-after="+s.key(), nil, -1)
	})
}

// put makes objects with names of their own, all over the bucket.
func (s *scaleSide) put(span time.Duration) (float64, error) {
	body := make([]byte, 100)
	return s.load(span, 16, func() (rawRequest, error) {
		s.made++
		return s.sign.request("PUT", fmt.Sprintf("/flat/%s-%d", s.key(), s.made), body, 0)
	})
}

// stat looks at files that the kernel does not know yet, most of them: the
// mount is a new one.
func (s *scaleSide) stat(span time.Duration) (_ float64, err error) {
	s.s.umount(s.mnt)
	if s.mnt, err = s.s.mount(); err != nil {
		return 0, err
	}
	const threads = 4
	seeds := make([]*rand.Rand, threads)
	for i := range seeds {
		seeds[i] = rand.New(rand.NewPCG(s.rand.Uint64(), 0))
	}
	var st syscall.Stat_t
	dir := filepath.Join(s.mnt, "flat")
	if err := syscall.Lstat(dir, &st); err != nil {
		return 0, err
	}
	return s.parallel(threads, span, func(c, _ int) error {
		var st syscall.Stat_t
		return syscall.Lstat(fmt.Sprintf("%s/key-%09d", dir, seeds[c].IntN(s.keys)), &st)
	})
}
