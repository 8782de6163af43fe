package nfsserver

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// slowKV is a store whose disk has stopped after a commit: what others
// commit meanwhile does not become durable, and a strict reader waits for it.
type slowKV struct {
	cluster.KV
	armed atomic.Bool
	stuck chan struct{} // nil while the disk works
	free  chan struct{} // closed at the end of the test
}

func (kv *slowKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	err := kv.KV.Update(ctx, fn)
	if kv.armed.CompareAndSwap(true, false) {
		close(kv.stuck)
	}
	return err
}

func (kv *slowKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.View(ctx, fn)
}

func (kv *slowKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	select {
	case <-kv.stuck:
		if !cluster.IsRelaxed(ctx) {
			select {
			case <-kv.free:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	default:
	}
	return kv.KV.View(ctx, fn)
}

// site is a server over the store, which nothing in the background uses.
func (kv *slowKV) site(t *testing.T) *site {
	t.Helper()
	disk := mem.NewDisk()
	clu := mem.New(mem.Options{Disk: disk})
	kv.KV, clu.KV = clu.KV, kv
	return openSiteOver(t, disk, clu, vfs.Config{NoBackground: true}, everyone)
}

// TestReplyWaitsForNobody: an operation whose own change is durable is
// answered, whatever others do to the directory.
func TestReplyWaitsForNobody(t *testing.T) {
	for name, call := range map[string]func(c *client, dir []byte) (uint32, *xdr.Writer){
		"REMOVE": func(c *client, dir []byte) (uint32, *xdr.Writer) {
			_, _, _ = c.create(dir, "f", createUnchecked, set{})
			return procRemove, diropArgs(dir, "f")
		},
		"MKDIR": func(_ *client, dir []byte) (uint32, *xdr.Writer) {
			w := diropArgs(dir, "d")
			set{}.put(w)
			return procMkdir, w
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv := &slowKV{stuck: make(chan struct{}), free: make(chan struct{})}
			c := kv.site(t).mount("/", 0)
			proc, args := call(c, c.root)
			kv.armed.Store(true)
			answered := make(chan Status, 1)
			go func() {
				st, _ := c.nfs(proc, args)
				answered <- st
			}()
			select {
			case st := <-answered:
				if st != OK {
					t.Errorf("status %v", st)
				}
			case <-time.After(30 * time.Second):
				t.Error("no answer while the disk is busy with the changes of others")
			}
			close(kv.free)
		})
	}
}
