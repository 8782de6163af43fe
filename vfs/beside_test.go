package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// twoGateways is two gateways over one store; the first is the older one, which collects.
type twoGateways struct {
	t    *testing.T
	c    *cluster.Cluster
	a, b *FS
}

var besideConfig = Config{NoBackground: true, InlineBytes: 10, Now: later}

func openTwo(t *testing.T) *twoGateways {
	t.Parallel()
	var o mem.Options
	if strings.HasPrefix(t.Name(), distributed+"/") {
		o = mem.Distributed(1)
	}
	c := mem.New(o)
	t.Cleanup(func() { want(t, c.Close(), nil) })
	p := &twoGateways{t: t, c: c}
	p.a, p.b = bucketFS(t, p.open(beside(t, c))), p.open(beside(t, c))
	return p
}

func (p *twoGateways) open(c *cluster.Cluster) *FS {
	p.t.Helper()
	fs, err := Open(bg, c, besideConfig)
	want(p.t, err, nil)
	p.t.Cleanup(func() { _ = fs.Close(bg) })
	return fs
}

var blobBody = strings.Repeat("0123456789", 10_000)

// What one gateway reads, another one does not remove before that is over.
func TestBesideDownload(t *testing.T) {
	p := openTwo(t)
	put(t, p.b, "key", blobBody)
	o, err := p.b.GetObject(bg, ObjectName{"bucket", "key"}, GetOptions{})
	want(t, err, nil)
	_, err = p.a.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
	want(t, err, nil)
	for range 2 {
		_, err = p.a.Collect(bg)
		want(t, err, nil)
	}
	got, err := io.ReadAll(io.NewSectionReader(o, 0, int64(len(blobBody))))
	if want(t, err, nil); string(got) != blobBody {
		t.Error("other bytes than were put")
	}
	o.Close()
	collect(t, p.a)
	if n := countBlobs(t, p.c); n != 0 {
		t.Errorf("%d blobs are left", n)
	}
}

// Who does not lead collects nothing, and takes over when the other leaves.
func TestBesideCollector(t *testing.T) {
	p := openTwo(t)
	put(t, p.b, "key", blobBody)
	_, err := p.b.DeleteObject(bg, ObjectName{"bucket", "key"}, DeleteOptions{})
	want(t, err, nil)
	collect(t, p.b)
	if n := countBlobs(t, p.c); n != 1 {
		t.Errorf("%d blobs are left by who does not lead", n)
	}
	want(t, errors.Join(p.a.Close(bg), p.a.kv.Close()), nil)
	for begin := time.Now(); countBlobs(t, p.c) > 0; {
		collect(t, p.b)
		if time.Since(begin) > time.Minute {
			t.Fatal("nobody collects")
		}
	}
}

// pausedBody stops after its first part until it is let go on.
type pausedBody struct {
	first, rest io.Reader
	reached     chan struct{}
	goOn        chan struct{}
}

func (b *pausedBody) Read(p []byte) (int, error) {
	if n, err := b.first.Read(p); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	if b.reached != nil {
		close(b.reached)
		b.reached = nil
		<-b.goOn
	}
	return b.rest.Read(p)
}

// A check with repair, and the start of a third gateway, take nothing of an object that
// another one is storing.
func TestBesidePut(t *testing.T) {
	p := openTwo(t)
	goOn := p.storing(p.b, "big")
	rep, err := p.a.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
	third := p.open(beside(t, p.c))
	_, err = third.leftovers.Sweep(bg)
	want(t, err, nil)
	collect(t, p.a)
	want(t, goOn(), nil)
	got, err := readObject(p.a, "bucket", "big")
	if want(t, err, nil); !bytes.Equal(got, append(bytes.Repeat([]byte("x"), 70<<20), blobBody...)) {
		t.Error("other bytes than were put")
	}
}

// What a gateway left that is gone is removed: blobs that nothing names, contents that
// were not published, inodes that it had open.
func TestBesideLeftovers(t *testing.T) {
	p := openTwo(t)
	gone := p.open(beside(t, p.c))
	leaveBlob(t, gone, 0)
	id, err := gone.ids.Take(bg)
	want(t, err, nil)
	staged := record.Content{Staging: true}.Encode()
	want(t, gone.update(bg, func(t cluster.Txn, _ *op) error { return t.Set(record.ContentKey(ContentID(id)), staged) }), nil)
	_, _, _, err = gone.Create(bg, Root, mustLookup(t, gone, RootIno, "bucket").Ino, "open", CreateOptions{Mode: 0o644, Flags: OpenRead})
	want(t, err, nil)
	want(t, gone.Unlink(bg, Root, mustLookup(t, gone, RootIno, "bucket").Ino, "open"), nil)

	left := func(fs *FS) (n int) {
		want(t, fs.view(bg, func(r cluster.Reader) error {
			n = 0
			for _, tab := range []byte{record.TabContent, record.TabOrphan} {
				any, err := record.AnyKey(r, []byte{tab})
				if err != nil {
					return err
				}
				if any {
					n++
				}
			}
			return nil
		}), nil)
		return n + countBlobs(t, p.c)
	}
	collect(t, p.a)
	if n := left(p.a); n != 3 {
		t.Errorf("%d of 3 are left while the gateway is there", n)
	}
	// As a crash: no file is closed.
	want(t, errors.Join(gone.kv.Close(), p.a.Close(bg), p.a.kv.Close(), p.b.Close(bg), p.b.kv.Close()), nil)
	last := p.open(beside(t, p.c))
	_, err = last.leftovers.Sweep(bg)
	want(t, err, nil)
	collect(t, last)
	if n := left(last); n != 0 {
		t.Errorf("%d are left", n)
	}
	rep, err := last.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
}

// storing is an object that a gateway is storing: some of it is stored.
func (p *twoGateways) storing(fs *FS, key string) (goOn func() error) {
	p.t.Helper()
	first := bytes.Repeat([]byte("x"), 70<<20) // a whole blob is stored before the rest
	body := &pausedBody{first: bytes.NewReader(first), rest: strings.NewReader(blobBody), reached: make(chan struct{}), goOn: make(chan struct{})}
	reached, done, before := body.reached, make(chan error, 1), countBlobs(p.t, p.c)
	go func() {
		_, err := fs.PutObject(bg, ObjectName{"bucket", key}, body, PutOptions{Size: int64(len(first) + len(blobBody))})
		done <- err
	}()
	<-reached
	for countBlobs(p.t, p.c) == before { // the first one is on its way
		time.Sleep(time.Millisecond)
	}
	return func() error {
		close(body.goOn)
		return <-done
	}
}

// What a gateway left that is gone is removed while the others live, and not before they
// have named what they were storing then.
func TestBesideLeftAlive(t *testing.T) {
	p := openTwo(t)
	gone := p.open(beside(t, p.c))
	crash, goOn := p.storing(gone, "half"), p.storing(p.b, "slow")
	want(t, gone.kv.Close(), nil)
	if err := crash(); err == nil {
		t.Error("an object is stored by who is gone")
	}
	both := countBlobs(t, p.c)
	for p.a.session.Waits() == 0 || p.b.session.Waits() == 0 {
		time.Sleep(time.Millisecond) // until beats have told
	}
	sweep := func() { want(t, errors.Join(p.a.sweepLeft(bg), p.b.sweepLeft(bg)), nil) }
	for said := p.b.session.Waits(); ; { // a says more by now; b cannot
		sweep()
		var list []record.Reads
		want(t, p.a.view(bg, func(r cluster.Reader) (err error) {
			list, err = gatewayReads(r)
			return err
		}), nil)
		if list[0].First >= said || list[1].First >= said {
			break
		}
	}
	sweep()
	if n := countBlobs(t, p.c); n != both {
		t.Errorf("%d of %d blobs are left while an object is being stored", n, both)
	}
	want(t, goOn(), nil)
	for countBlobs(t, p.c) != 2 {
		sweep()
	}
	got, err := readObject(p.a, "bucket", "slow")
	if want(t, err, nil); len(got) != 70<<20+len(blobBody) {
		t.Errorf("%d bytes", len(got))
	}
	rep, err := p.a.Check(bg, CheckOptions{Data: true})
	if want(t, err, nil); len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
}

// gatewayReads are what the gateways say of their reads and numbers.
func gatewayReads(r cluster.Reader) (list []record.Reads, err error) {
	all, err := record.Gateways(r)
	for i := range all {
		v, e := r.Get(record.ReadKey(all[i].ID))
		reads, e2 := record.DecodeReads(v)
		err = errors.Join(err, e, e2)
		list = append(list, reads)
	}
	return list, err
}

// A purge that one gateway is asked for reaches the watchers of the others.
func TestBesidePurge(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "key", "value")
	ino := mustLookup(t, p.a, mustLookup(t, p.a, RootIno, "bucket").Ino, "key").Ino
	var heard recorder
	defer p.b.Watch(&heard)()
	ctx, end := context.WithCancel(bg)
	defer end()
	go p.b.session.ServePurges(ctx, p.b.Purge)
	n, others, err := p.a.PurgeAll(bg, "bucket/key")
	want(t, err, nil)
	if n != 1 || len(others) != 1 || !others[0].Answered || others[0].Inodes != 1 || others[0].Error != "" {
		t.Errorf("%d here, others: %+v", n, others)
	}
	heard.mu.Lock()
	if !slices.Contains(heard.inodes, ino) {
		t.Errorf("of inode %d, the other's watchers heard of %v", ino, heard.inodes)
	}
	heard.mu.Unlock()
	_, _, err = p.a.PurgeAll(bg, "bucket/none")
	want(t, err, ErrNotExist)
}

// All gateways tell of the scrub that one of them does.
func TestBesideScrub(t *testing.T) {
	p := openTwo(t)
	put(t, p.b, "key", blobBody)
	want(t, p.a.scrub.Pass(bg, 0), nil)
	for _, fs := range []*FS{p.a, p.b} {
		if s := fs.Scrub(bg); s.Running || s.Finished.IsZero() || s.Blobs != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// The numbers that a gateway uses are never below what it said when it came, also when one
// leaves that had taken some.
func TestBesideNumbers(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "key", blobBody)
	third := p.open(beside(t, p.c))
	first := func() (n uint64) {
		want(t, third.view(bg, func(r cluster.Reader) (err error) {
			n, err = third.session.Left(r)
			return err
		}), nil)
		return n
	}
	want(t, errors.Join(p.a.Close(bg), p.a.kv.Close(), p.b.Close(bg), p.b.kv.Close()), nil)
	id := leaveBlob(t, third, 0)
	if n := first(); id.Seq < n {
		t.Errorf("blob %d is made by who said that it makes none below %d", id.Seq, n)
	}
}

// Conditional writes through both gateways lose nothing: a counter that each raises if
// it is as it was read counts all that were acknowledged, and no read is older than an
// acknowledged write.
func TestBesideConditions(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "count", "0")
	const each = 50
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := 0
	raise := func(fs *FS) (bool, error) {
		mu.Lock()
		least := acked
		mu.Unlock()
		b, info, err := tryGet(bg, fs, "count")
		if err != nil {
			return false, err
		}
		n, err := strconv.Atoi(b)
		if err != nil || n < least {
			return false, fmt.Errorf("read %q after %d were acknowledged: %w", b, least, err)
		}
		text := strconv.Itoa(n + 1)
		o := PutOptions{Size: int64(len(text))}
		o.Cond.IfMatch = []ETag{info.ETag}
		_, err = fs.PutObject(bg, ObjectName{"bucket", "count"}, strings.NewReader(text), o)
		if errors.Is(err, ErrPrecondition) {
			return false, nil
		}
		if err == nil {
			mu.Lock()
			acked = max(acked, n+1)
			mu.Unlock()
		}
		return err == nil, err
	}
	for _, fs := range []*FS{p.a, p.b, p.a, p.b} {
		wg.Go(func() {
			for done := 0; done < each; {
				ok, err := raise(fs)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					done++
				}
			}
		})
	}
	wg.Wait()
	if b, _ := get(t, p.b, "count"); b != strconv.Itoa(4*each) {
		t.Errorf("the count is %s of %d", b, 4*each)
	}
}

// A key that is removed at one gateway opens nothing at another one, a second later at
// the latest; one that is made is known at once.
func TestBesideKeys(t *testing.T) {
	p := openTwo(t)
	key := users.NewKey(time.Now())
	_, err := p.a.Users().Make(bg, users.User{Name: "ann", UID: 5000, Keys: []users.AccessKey{key}}, users.Options{})
	want(t, err, nil)
	_, _, err = p.b.Users().ByKey(bg, key.ID)
	want(t, err, nil)
	removed := time.Now()
	want(t, p.a.Users().Remove(bg, "ann"), nil)
	for err == nil {
		asked := time.Now()
		if _, _, err = p.b.Users().ByKey(bg, key.ID); err == nil && asked.Sub(removed) > time.Second {
			t.Fatal("it is known for more than a second")
		}
	}
	want(t, err, ErrNoSuchUser)
}

// A store that others can use is not opened without a lease.
func TestOpenUnjoined(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	c.Exclusive = false
	_, err := Open(bg, c, besideConfig)
	want(t, err, ErrInvalid)
}
