package sharedlocks

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// One more shared lock, in a file with many holders and as many that wait.
func TestCrowdedFile(t *testing.T) {
	for _, n := range []int{125, 1000} {
		c := mem.New(mem.Options{})
		f, err := record.DecodeFileLocks(nil)
		must(t, err)
		for i := range n {
			o := lock.Owner{Client: "mount 2", ID: fmt.Sprint(i)}
			f.Held[lock.Range] = append(f.Held[lock.Range], lock.Lock{Owner: o, End: lock.EOF})
			f.Holders[o] = record.LockHolder{Gateway: 2}
			w := lock.Waiter{Lock: exclusive(lock.Owner{Client: "mount 2", ID: fmt.Sprint("w", i)}), Ticket: uint64(i + 1)}
			f.Waiting = append(f.Waiting, w)
			f.Waits[w.Ticket] = 2
		}
		must(t, c.KV.Update(bg, func(x cluster.Txn) error {
			for g := range uint64(2) {
				if err := x.Set(record.FenceKey(g+1), []byte("{}")); err != nil {
					return err
				}
			}
			return x.Set(record.LockKey(1), f.Encode())
		}))
		g := New(Config{KV: c.KV, Gateway: 1, Log: slog.New(slog.DiscardHandler), Doubt: func(func()) {}})
		b := time.Now()
		ctx, stop := context.WithTimeout(bg, endTimeout)
		err = g.TryLock(ctx, 1, lock.Range, lock.Lock{Owner: lock.Owner{Client: "mount 1", ID: "1"}, End: lock.EOF})
		stop()
		must(t, err)
		t.Log(n, "holders and as many that wait:", time.Since(b))
		g.Close()
		must(t, c.Close())
	}
}
