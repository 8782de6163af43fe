package session

import (
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// The next server of a machine goes on at once, also where the fence of the one before stays for the locks of
// its mounts: it has until the others put that out.
func TestNextOnTheMachine(t *testing.T) {
	for _, stays := range []bool{false, true} {
		c := mem.New(mem.Options{})
		other, _, _ := joinTelling(t, c.KV, besideMember("other"))
		old, p, _ := joinTelling(t, c.KV, besideMember("old"))
		if stays {
			old.stays.Store(true)
		}
		begin := time.Now()
		if err := old.Leave(); err != nil {
			t.Fatal(err)
		}
		p.Close()
		next, _, _ := joinTelling(t, c.KV, besideMember("next"))
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
