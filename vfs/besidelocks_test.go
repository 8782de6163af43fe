package vfs

import (
	"errors"
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
