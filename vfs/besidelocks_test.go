package vfs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

func ownLock(client string) lock.Lock {
	return lock.Lock{Owner: lock.Owner{Client: client, ID: "1"}, Type: lock.Exclusive, End: lock.EOF}
}

// Two gateways lock one another's clients out; what one left that is put out is free, for who
// waits and for who asks.
func TestBesideLocks(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "key", blobBody)
	ino := uint64(mustLookup(t, p.a, mustLookup(t, p.a, RootIno, "bucket").Ino, "key").Ino)
	gone := p.open(beside(t, p.c))
	for _, space := range []lock.Space{lock.Range, lock.Flock} {
		want(t, gone.Locks().TryLock(bg, ino, space, ownLock("gone")), nil)
		want(t, p.a.Locks().TryLock(bg, ino, space, ownLock("a")), ErrWouldBlock)
	}
	result := make(chan error, 1)
	_, waiting, err := p.b.Locks().LockFunc(bg, ino, lock.Range, ownLock("b"), func(err error) { result <- err })
	if want(t, err, nil); !waiting {
		t.Fatal("two have it")
	}
	// As another gateway does that saw it stand still.
	want(t, p.c.KV.Update(bg, func(x cluster.Txn) error { return x.Delete(record.FenceKey(gone.session.ID())) }), nil)
	want(t, <-result, nil)
	want(t, p.a.Locks().TryLock(bg, ino, lock.Flock, ownLock("a")), nil)
	if err := gone.Locks().TryLock(bg, ino+1, lock.Flock, ownLock("gone")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("one that was put out asks: %v", err)
	}
	p.a.Locks().ReleaseClient("a")
	p.b.Locks().ReleaseClient("b")
	rep, err := p.a.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) > 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
	p.noLocks()
}

// noLocks fails if a record of locks is left.
func (p *twoGateways) noLocks() {
	p.t.Helper()
	want(p.t, p.c.KV.View(bg, func(r cluster.Reader) error {
		for _, tab := range []byte{record.TabLock, record.TabWait, record.TabLocker} {
			if any, err := record.AnyKey(r, []byte{tab}); err != nil || any {
				p.t.Errorf("table %c: %v, %v", tab, any, err)
			}
		}
		return nil
	}), nil)
}

// The leader removes what a gateway left that is gone, in files that nobody locks any more,
// and check what belongs to no file.
func TestBesideLocksLeft(t *testing.T) {
	p := openTwo(t)
	gone := p.open(beside(t, p.c))
	for ino := range uint64(5) {
		want(t, gone.Locks().TryLock(bg, 100+ino, lock.Range, ownLock("gone")), nil)
	}
	want(t, gone.kv.Close(), nil)
	want(t, p.b.sweepLocks(bg), nil) // it does not lead
	want(t, p.a.Locks().TryLock(bg, 100, lock.Range, ownLock("a")), nil)
	want(t, p.a.sweepLocks(bg), nil)
	list, _, err := p.b.Locks().List(bg, 10, func(*lock.Entry) bool { return true })
	if want(t, err, nil); len(list) != 1 || list[0].Gateway != p.a.session.ID() {
		t.Errorf("%+v", list)
	}
	want(t, p.c.KV.Update(bg, func(x cluster.Txn) error {
		return errors.Join(x.Set(record.LockKey(17), []byte("?")), x.Set(record.WaitKey(ownLock("b").Owner), record.EncodeWaits([]uint64{100})))
	}), nil)
	rep, err := p.a.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) != 3 { // and the lock of what is no file
		t.Errorf("check: %+v", rep.Problems)
	}
	p.noLocks()
}

// A transaction without an answer may come late: what is given up since, stays so from the
// moment in which it cannot come any more.
func TestBesideLocksDoubt(t *testing.T) {
	p := openTwo(t)
	settled := make(chan struct{})
	before, err := p.stored(p.a)
	want(t, err, nil)
	p.a.session.Doubt(func() { close(settled) })
	select {
	case <-settled:
	case <-time.After(time.Minute):
		t.Fatal("the fence is not written anew")
	}
	after, err := p.stored(p.a)
	if want(t, err, nil); after.Renewed != before.Renewed+1 {
		t.Errorf("renewed %d times, before %d", after.Renewed, before.Renewed)
	}
}

// stored is a gateway's fence.
func (p *twoGateways) stored(fs *FS) (g Gateway, err error) {
	err = p.c.KV.View(bg, func(r cluster.Reader) error {
		all, err := record.Gateways(r)
		for i := range all {
			if all[i].ID == fs.session.ID() {
				g = all[i]
			}
		}
		return err
	})
	return g, err
}

// Check mends the list of what remote clients have locked.
func TestBesideLocksListed(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "key", blobBody)
	ino := uint64(mustLookup(t, p.a, mustLookup(t, p.a, RootIno, "bucket").Ino, "key").Ino)
	l := ownLock(lock.RemotePrefix + "10.0.0.1 here host")
	client := l.Owner.Client
	want(t, p.a.Locks().TryLock(bg, ino, lock.Range, l), nil)
	want(t, p.c.KV.Update(bg, func(x cluster.Txn) error {
		return errors.Join(x.Delete(record.LockerKey(client, ino)), x.Set(record.LockerKey(client, ino+1), record.EncodeLocker(1)),
			x.Set([]byte{record.TabLocker, 0}, nil))
	}), nil)
	rep, err := p.b.Check(bg, CheckOptions{Repair: true})
	if want(t, err, nil); len(rep.Problems) != 3 {
		t.Errorf("check: %+v", rep.Problems)
	}
	want(t, p.b.Locks().TryLock(bg, ino, lock.Range, ownLock("b")), ErrWouldBlock)
	want(t, p.b.Locks().Rebooted(bg, client, 0), nil)
	p.noLocks()
}

// Gateways grant share reservations once each knows that all know them; check finds them in order.
func TestBesideShares(t *testing.T) {
	p := openTwo(t)
	put(t, p.a, "key", blobBody)
	ino := uint64(mustLookup(t, p.a, mustLookup(t, p.a, RootIno, "bucket").Ino, "key").Ino)
	l, other := ownLock(lock.RemotePrefix+"10.0.0.1 here host"), ownLock(lock.RemotePrefix+"10.0.0.2 here host")
	for begin, at := time.Now(), []*FS{p.a, p.b}; len(at) > 0; time.Sleep(50 * time.Millisecond) {
		err := at[0].Locks().TryLock(bg, ino, lock.Share, l)
		if err == nil {
			at = at[1:]
		} else if !errors.Is(err, ErrUnavailable) || time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
	want(t, p.b.Locks().TryLock(bg, ino, lock.Share, other), ErrWouldBlock)
	rep, err := p.a.Check(bg, CheckOptions{})
	if want(t, err, nil); len(rep.Problems) != 0 {
		t.Errorf("check: %+v", rep.Problems)
	}
	want(t, p.a.Locks().Rebooted(bg, l.Owner.Client, 0), nil)
	want(t, p.b.Locks().TryLock(bg, ino, lock.Share, other), nil)
	want(t, p.a.Locks().Unlock(bg, ino, lock.Share, other), nil)
	p.noLocks()
}

// The next server of a data folder, which knows that the one before has ended, puts that out when it
// has its locks, and no earlier: nobody gets those in between. What it did not take over is free then.
func TestBesideLocksNext(t *testing.T) {
	p := openTwo(t)
	old := p.open(beside(t, p.c))
	for ino, client := range map[uint64]string{100: "kept", 101: "lost"} {
		want(t, old.Locks().TryLock(bg, ino, lock.Flock, ownLock(client)), nil)
	}
	there := func() (there bool) {
		t.Helper()
		want(t, p.c.KV.View(bg, func(r cluster.Reader) error {
			v, err := r.Get(record.FenceKey(old.session.ID()))
			there = v != nil
			return err
		}), nil)
		return there
	}
	me := Gateway{Host: "host", PID: 1, Version: "test", Beside: true, Serves: true, Restores: true, Ended: []uint64{old.session.ID()}}
	mine := *p.c
	mine.KV, mine.Blobs = borrowed{p.c.KV}, borrowedBlobs{p.c.Blobs}
	joined, err := Join(bg, &mine, me, slog.New(slog.DiscardHandler))
	want(t, err, nil)
	cfg := besideConfig
	cfg.Restore = func(ctx context.Context, fs *FS) error {
		time.Sleep(BeatEvery * 3 / 2)
		if !there() {
			t.Error("it is put out before the next one has its locks")
		}
		return fs.Locks().Reclaim(ctx, 100, lock.Flock, ownLock("kept"))
	}
	next, err := Open(bg, joined, cfg)
	want(t, err, nil)
	for begin := time.Now(); there(); time.Sleep(50 * time.Millisecond) {
		if took := time.Since(begin); took > 5*BeatEvery {
			t.Fatalf("it is there %v after", took)
		}
	}
	want(t, p.a.Locks().TryLock(bg, 100, lock.Flock, ownLock("a")), ErrWouldBlock)
	want(t, p.a.Locks().TryLock(bg, 101, lock.Flock, ownLock("a")), nil)
	next.Locks().ReleaseClient("kept")
	want(t, p.a.Locks().TryLock(bg, 100, lock.Flock, ownLock("a")), nil)
	want(t, errors.Join(next.Close(bg), joined.Close()), nil)
}
