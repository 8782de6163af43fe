package session

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// The next server of a machine goes on at once, also where the fence of the one before stays for the locks of
// its mounts: it has until the others put that out.
func TestNextOnTheMachine(t *testing.T) {
	for _, stays := range []bool{false, true} {
		c := mem.New(mem.Options{})
		join := func(host string) (*Lease, *coherence.Client) {
			p, err := coherence.New(coherence.Options{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			begin := time.Now()
			ctx, cancel := context.WithTimeout(bg, 30*time.Second)
			defer cancel()
			l, err := Join(ctx, c.KV, p, besideMember(host), quiet)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("stays %v: %s joined in %v", stays, host, time.Since(begin).Round(time.Millisecond))
			return l, p
		}
		other, _ := join("other")
		old, p := join("old")
		if stays {
			old.stays.Store(true)
		}
		begin := time.Now()
		if err := old.Leave(); err != nil {
			t.Fatal(err)
		}
		p.Close()
		next, _ := join("next")
		if took := time.Since(begin); took > cluster.PeerWait/2 {
			t.Errorf("stays %v: next is there %v after", stays, took.Round(time.Millisecond))
		}
		if g, err := look(bg, c.KV, func(g *record.Gateway) bool { return g.ID == old.me.ID }); err != nil || (len(g) == 1) != stays {
			t.Errorf("stays %v: %v, %v", stays, g, err)
		}
		_ = next.Leave()
		_ = other.Leave()
	}
}
