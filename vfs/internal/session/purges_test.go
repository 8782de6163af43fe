package session

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

func records(t *testing.T, kv cluster.KV, table byte) (n int) {
	t.Helper()
	from, to := record.Table(table)
	if err := kv.View(bg, func(r cluster.Reader) error {
		n = 0
		return r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(_, _ []byte) error { n++; return nil })
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// A purge reaches all that serve, and tells who did not answer. Nothing of it stays.
func TestPurge(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	clock := &hand{}
	a, b, fails, gone := besideLease(t, c.KV, "a", clock), besideLease(t, c.KV, "b", clock), besideLease(t, c.KV, "fails", clock), besideLease(t, c.KV, "gone", clock)
	besideLease(t, c.KV, "silent", clock)
	me := besideMember("command")
	me.Serves = false // nobody asks it
	command, err := newLease(c.KV, nil, me, quiet)
	if err == nil {
		err = command.take(bg)
	}
	if err != nil {
		t.Fatal(err)
	}
	var waits atomic.Int64
	a.clock = func() time.Duration { return time.Duration(waits.Load()) }
	ctx, end := context.WithCancel(bg)
	defer end()
	paths := make(chan string, 2)
	go New(b, nil).ServePurges(ctx, func(_ context.Context, path string) (int, error) {
		paths <- path
		return 7, nil
	})
	go New(fails, nil).ServePurges(ctx, func(context.Context, string) (int, error) { return 0, fserr.ErrIO })
	go New(a, nil).ServePurges(ctx, func(context.Context, string) (int, error) {
		t.Error("who asks is asked")
		return 0, nil
	})
	type result struct {
		list []Purged
		err  error
	}
	done := make(chan result, 1)
	go func() {
		list, err := New(a, nil).Purge(bg, "bucket/dir/", EvictAfter)
		done <- result{list, err}
	}()
	for records(t, c.KV, record.TabPurge) == 0 {
		time.Sleep(time.Millisecond) // until it has asked
	}
	if err := gone.Leave(); err != nil {
		t.Fatal(err)
	}
	round(t, a, b, fails)
	if path := <-paths; path != "bucket/dir/" {
		t.Errorf("path %q", path)
	}
	for records(t, c.KV, record.TabPurge) < 3 {
		time.Sleep(time.Millisecond) // until both have answered
	}
	select {
	case <-done:
		t.Fatal("it does not wait for all")
	default:
	}
	waits.Store(int64(EvictAfter))
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	answers := map[string]Purged{}
	for _, p := range got.list {
		answers[p.Host] = p
	}
	if len(answers) != 4 || answers["b"].Inodes != 7 || !answers["b"].Answered || answers["fails"].Error != fserr.ErrIO.Error() ||
		answers["silent"].Answered || answers["silent"].Gone || !answers["gone"].Gone {
		t.Errorf("%+v", got.list)
	}
	if n := records(t, c.KV, record.TabPurge); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// What somebody asked for who is gone by now is removed by the next one who asks, and too
// many at once are refused.
func TestPurgeBounds(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	a, b := besideLease(t, c.KV, "a", &hand{}), besideLease(t, c.KV, "b", &hand{})
	for range maxPurges {
		if _, err := a.askPurge(bg, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.purge(bg, "y", 0); !errors.Is(err, fserr.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	other := besideLease(t, c.KV, "other", &hand{})
	list, err := b.purge(bg, "y", 0)
	if err != nil || len(list) != 1 || list[0].Answered || list[0].ID != other.me.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if n := records(t, c.KV, record.TabPurge); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if slices.ContainsFunc(list, func(p Purged) bool { return p.Host == "b" }) {
		t.Error("it asks itself")
	}
}

// keeps is a store in which nothing of a table is deleted for a while, and of which commits have
// no outcome.
type keeps struct {
	cluster.KV
	table  byte
	keeps  atomic.Int64 // so many transactions fail that delete
	doubts atomic.Int64 // so many are committed without an answer
}

type keepsTxn struct {
	cluster.Txn
	kv *keeps
}

func (t keepsTxn) Delete(key []byte) error {
	if key[0] == t.kv.table && t.kv.keeps.Add(-1) >= 0 {
		return cluster.ErrUnavailable
	}
	return t.Txn.Delete(key)
}

func (k *keeps) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	err := k.KV.Update(ctx, func(t cluster.Txn) error { return fn(keepsTxn{t, k}) })
	if err == nil && k.doubts.Add(-1) >= 0 {
		return cluster.ErrUnavailable
	}
	return err
}

// What a purge could not remove is removed by a later one of the same gateway, also where it
// was not known that it was asked for.
func TestPurgeLeftovers(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	kv := &keeps{KV: c.KV, table: record.TabPurge}
	a := besideLease(t, kv, "a", &hand{})
	besideLease(t, c.KV, "silent", &hand{})
	// Each purge tries to remove what is left before it asks, and when it is over.
	for range maxPurges {
		number, err := a.askPurge(bg, "x")
		if err != nil {
			t.Fatal(err)
		}
		kv.keeps.Store(1)
		a.endPurge(bg, number)
	}
	if n := records(t, c.KV, record.TabPurge); n != maxPurges {
		t.Fatalf("%d records are left", n)
	}
	if list, err := a.purge(bg, "y", 0); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if n := records(t, c.KV, record.TabPurge); n != 0 {
		t.Errorf("%d records are left", n)
	}
	kv.doubts.Store(1)
	if _, err := a.purge(bg, "z", 0); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("without an answer: %v", err)
	}
	if n := records(t, c.KV, record.TabPurge); n != 0 || len(a.asked.numbers) > 0 {
		t.Errorf("%d records are left, and %d in memory", n, len(a.asked.numbers))
	}
}
