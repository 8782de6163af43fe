package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/mem"
)

// delaysTime is how long TestBesideDelays goes on by default; OGW_BESIDE_TIME has another time.
const delaysTime = 20 * time.Second

// pace is how slow an engine is.
type pace struct{ over atomic.Bool }

func (p *pace) slowly() {
	if p.over.Load() {
		return
	}
	switch rand.IntN(100) {
	case 0:
		time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Millisecond))))
	}
}

// lost is clustertest.Slow.Lost.
func (p *pace) lost() int {
	if p.over.Load() {
		return 0
	}
	return 200
}

type slowBlobs struct {
	cluster.Blobs
	pace *pace
}

func (b slowBlobs) ReadAt(ctx context.Context, id cluster.BlobID, p []byte, off int64) (int, error) {
	b.pace.slowly()
	return b.Blobs.ReadAt(ctx, id, p, off)
}

func (b slowBlobs) Create(ctx context.Context, id cluster.BlobID, sizeHint int64) (cluster.BlobWriter, error) {
	b.pace.slowly()
	return b.Blobs.Create(ctx, id, sizeHint)
}

func (b slowBlobs) Delete(ctx context.Context, ids ...cluster.BlobID) error {
	b.pace.slowly()
	return b.Blobs.Delete(ctx, ids...)
}

// told is a key that one client writes and all read: its value n is a body, or none.
type told struct {
	key string

	mu    sync.Mutex
	begun []bool // by value, whether it is a body
	known int    // the last one that was acknowledged
}

// body is that of a value.
func (k *told) body(n int) []byte {
	size := []int{9, 30_000, 200_000}[n%3]
	return bytes.Repeat(fmt.Appendf(nil, "%s=%-6d\n", k.key, n), size/9+1)[:size]
}

func (k *told) begin(body bool) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = append(k.begun, body)
	return len(k.begun) - 1
}

func (k *told) knows(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = n
}

func (k *told) since() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// judge returns what is wrong with what was read, "" for nothing: since is what was known when
// the read began.
func (k *told) judge(since int, got []byte, absent bool) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := since; n < len(k.begun); n++ {
		if k.begun[n] != absent && (absent || bytes.Equal(got, k.body(n))) {
			return ""
		}
	}
	return fmt.Sprintf("%s holds %d bytes, %.12q, absent: %v; it was %d when the read began, and is at most %d", k.key, len(got), got, absent, since, len(k.begun)-1)
}

// busy reports whether an operation may be tried again.
func busy(err error) bool {
	return errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrConflict)
}

// delays is gateways over a slow store, and what is done through them.
type delays struct {
	t     *testing.T
	gates []*FS
	dir   Ino
	until time.Time
	keys  []*told

	mu    sync.Mutex
	lines map[string]int64 // of the log, that were stored, and where
}

func (d *delays) gate() *FS { return d.gates[rand.IntN(len(d.gates))] }

// write writes one key after another value, through any gateway.
func (d *delays) write(k *told) {
	for i := 0; time.Now().Before(d.until); i++ {
		fs, kind := d.gate(), rand.IntN(5)
		n := k.begin(kind > 0)
		var err error
		name, temp := ObjectName{"bucket", k.key}, fmt.Sprint("temp-", k.key, "-", i)
		switch body := k.body(n); kind {
		case 0:
			_, err = fs.DeleteObject(bg, name, DeleteOptions{})
		case 1:
			err = d.putTemp(temp, body)
			if err == nil {
				err = d.gate().RenameObject(bg, "bucket", temp, k.key, RenameOptions{})
			}
		case 2:
			err = d.storeFile(temp, k.key, body)
		default:
			_, err = fs.PutObject(bg, name, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
		}
		switch {
		case err == nil:
			k.knows(n)
		case !busy(err):
			d.t.Errorf("%s: value %d, kind %d: %v", k.key, n, kind, err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
	}
}

func (d *delays) putTemp(temp string, body []byte) error {
	_, err := d.gate().PutObject(bg, ObjectName{"bucket", temp}, bytes.NewReader(body), PutOptions{Size: int64(len(body))})
	return err
}

// storeFile stores a file as an editor does.
func (d *delays) storeFile(temp, name string, body []byte) error {
	fs := d.gate()
	_, f, _, err := fs.Create(bg, Root, d.dir, temp, CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite, Exclusive: true})
	if err != nil {
		return err
	}
	half := len(body) / 2
	_, err = f.WriteAt(bg, body[:half], 0)
	if err == nil {
		_, err = f.WriteAt(bg, body[half:], int64(half))
	}
	if err == nil {
		err = f.Sync(bg)
	}
	if err = errors.Join(err, f.Close(bg)); err != nil {
		return err
	}
	return d.gate().Rename(bg, Root, EntryName{d.dir, temp}, EntryName{d.dir, name}, 0)
}

// read reads keys, through any gateway, slowly.
func (d *delays) read() {
	for time.Now().Before(d.until) {
		k, fs, kind := d.keys[rand.IntN(len(d.keys))], d.gate(), rand.IntN(2)
		since := k.since()
		var got []byte
		var err error
		if kind == 0 {
			got, err = d.download(fs, k.key)
		} else {
			got, err = d.readFile(fs, k.key)
		}
		absent := errors.Is(err, ErrNotExist) || errors.Is(err, ErrNoSuchKey)
		switch {
		case absent || err == nil:
			if wrong := k.judge(since, got, absent); wrong != "" {
				d.t.Errorf("kind %d: %s", kind, wrong)
			}
		case !busy(err):
			d.t.Errorf("%s, kind %d: %v", k.key, kind, err)
		}
	}
}

// log appends lines to a file that others append to, each of which is stored.
func (d *delays) log(id int) {
	var f *File
	for i := 0; time.Now().Before(d.until); i++ {
		if f == nil {
			fs := d.gate()
			a, err := fs.Lookup(bg, Root, d.dir, "log")
			if err == nil {
				f, err = fs.Open(bg, Root, a.Ino, OpenWrite|OpenAppend)
			}
			if err != nil && !busy(err) {
				d.t.Errorf("log: %v", err)
			}
			if err != nil {
				continue
			}
		}
		line := fmt.Sprintf("%d %d %s\n", id, i, strings.Repeat("x", rand.IntN(300)))
		off, err := f.Append(bg, []byte(line))
		if err == nil {
			err = f.Sync(bg)
		}
		if err == nil {
			d.mu.Lock()
			d.lines[line] = off
			d.mu.Unlock()
		}
		if err != nil || rand.IntN(20) == 0 {
			_ = f.Close(bg)
			f = nil
		}
		time.Sleep(time.Duration(rand.Int64N(int64(50 * time.Millisecond))))
	}
	if f != nil {
		_ = f.Close(bg)
	}
}

var logLine = regexp.MustCompile(`^[0-2] \d+ x*\n$`)

// judgeLog has each line that was stored be in the log, where it was said to be, and all
// others whole, and once at most.
func (d *delays) judgeLog() {
	text, err := readObject(d.gates[0], "bucket", "log")
	want(d.t, err, nil)
	for line, off := range d.lines {
		if !bytes.HasPrefix(text[min(int(off), len(text)):], []byte(line)) {
			d.t.Errorf("at %d of %d bytes there is no %.30q", off, len(text), line)
		}
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		if !logLine.Match(line) || seen[string(line)] {
			d.t.Errorf("the log holds %.30q, or twice", line)
		}
		seen[string(line)] = true
	}
	d.t.Logf("%d lines, of which %d were acknowledged", len(seen), len(d.lines))
}

func (d *delays) download(fs *FS, key string) ([]byte, error) {
	o, err := fs.GetObject(bg, ObjectName{"bucket", key}, GetOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	r, got := io.NewSectionReader(o, 0, o.Info.Size), []byte(nil)
	for {
		part := make([]byte, 20_000)
		n, err := io.ReadFull(r, part)
		got = append(got, part[:n]...)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		if rand.IntN(50) == 0 { // until others have collected twice
			time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Second))))
		}
	}
}

func (d *delays) readFile(fs *FS, name string) ([]byte, error) {
	a, err := fs.Lookup(bg, Root, d.dir, name)
	if err != nil {
		return nil, err
	}
	f, err := fs.Open(bg, Root, a.Ino, OpenRead)
	if errors.Is(err, ErrStale) { // it was replaced in between
		return d.readFile(fs, name)
	}
	if err != nil {
		return nil, err
	}
	if rand.IntN(20) == 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Second))))
	}
	got := make([]byte, 300_000)
	n, err := f.ReadAt(bg, got, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return got[:n], errors.Join(err, f.Close(bg))
}

// However slow the store is, and whatever answers are lost, what three gateways read of keys
// that are replaced, renamed and removed through all is what one of them would, whole, and in
// the end nothing is left.
func TestBesideDelays(t *testing.T) {
	t.Parallel()
	span := delaysTime
	if s := os.Getenv("OGW_BESIDE_TIME"); s != "" {
		var err error
		span, err = time.ParseDuration(s)
		want(t, err, nil)
	}
	var o mem.Options
	if rand.IntN(2) == 0 {
		o = mem.Distributed(1)
	}
	c := mem.New(o)
	t.Cleanup(func() { want(t, c.Close(), nil) })
	slow, pace := *c, &pace{}
	slow.KV, slow.Blobs = &clustertest.Slow{KV: c.KV, Pause: pace.slowly, Lost: pace.lost}, slowBlobs{c.Blobs, pace}
	d := &delays{t: t, until: time.Now().Add(span), lines: map[string]int64{}}
	pace.over.Store(true)
	for range 3 {
		fs, err := Open(bg, beside(t, &slow), Config{NoBackground: true, InlineBytes: 10})
		want(t, err, nil)
		t.Cleanup(func() { _ = fs.Close(bg) })
		d.gates = append(d.gates, fs)
	}
	d.dir = bucketIno(t, bucketFS(t, d.gates[0]))
	put(t, d.gates[0], "log", "")
	pace.over.Store(false)
	var wg sync.WaitGroup
	for i := range 4 {
		k := &told{key: fmt.Sprint("k", i), begun: []bool{false}}
		d.keys = append(d.keys, k)
	}
	for _, k := range d.keys {
		wg.Go(func() { d.write(k) })
	}
	for range 6 {
		wg.Go(d.read)
	}
	for i := range 3 {
		wg.Go(func() { d.log(i) })
	}
	for _, fs := range d.gates {
		wg.Go(func() {
			for time.Now().Before(d.until) {
				if _, err := fs.Collect(bg); err != nil && !busy(err) {
					t.Errorf("collect: %v", err)
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	pace.over.Store(true)
	n := 0
	for _, k := range d.keys {
		n += len(k.begun)
	}
	t.Logf("%d values", n)
	d.judgeLog()
	p := &twoGateways{t: t, c: c, a: d.gates[0]}
	p.empty(d.dir)
	for { // what ended without an answer is not in doubt any more after some beats
		_, err := d.gates[0].leftovers.Sweep(bg)
		if err == nil && countBlobs(t, c) == 0 || time.Since(d.until) > time.Minute {
			break
		}
		_, _ = d.gates[0].Collect(bg)
	}
	p.wantNothingLeft()
}

// empty removes what is in a directory.
func (p *twoGateways) empty(dir Ino) {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		var names []string
		err := p.a.ReadDir(bg, Root, dir, ReadDirOptions{}, func(e DirEntry) error {
			names = append(names, e.Name)
			return nil
		})
		if err == nil && len(names) == 0 {
			return
		}
		for _, name := range names {
			_ = p.a.Unlink(bg, Root, dir, name) // again, if no answer came
		}
	}
	p.t.Fatal("what is there cannot be removed")
}
