package nfsserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster/mem"
	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs"
)

// TestSlowReadlink: READLINK takes as long as the store does, however long that is.
func TestSlowReadlink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		clu := mem.New(mem.Options{Disk: mem.NewDisk()})
		defer clu.Close()
		kv := &slowKV{KV: clu.KV, stuck: make(chan struct{}), free: make(chan struct{})}
		clu.KV = kv
		fs, err := vfs.Open(ctx, clu, vfs.Config{NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := New(Config{FS: fs, Exports: anyPort([]Export{everyone}), Logger: testLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
		kv.armed.Store(true)
		a, err := fs.Symlink(ctx, vfs.Root, vfs.RootIno, "link", "target")
		if err != nil {
			t.Fatal(err)
		}
		var args xdr.Writer
		args.Opaque(srv.sealer.append(nil, handle{srv.exports.Load().list[0].id, a.Ino, a.Gen}))
		r := rpc.Reply{Writer: xdr.Writer{B: make([]byte, 28)}} // its header
		answered := make(chan error, 1)
		go func() {
			answered <- srv.handler("READLINK", failPostOp, readlink)(ctx, &rpc.Call{Args: xdr.NewReader(args.B)}, &r)
		}()
		time.Sleep(5 * time.Minute)
		close(kv.free)
		synctest.Wait()
		if err := <-answered; err != nil || Status(r.Status) != OK {
			t.Errorf("status %v, %v", Status(r.Status), err)
		}
		res := xdr.NewReader(r.Results())
		if st := Status(res.Uint32()); st != OK || postOp(&res) != nil || res.String(maxPathArg) != "target" {
			t.Errorf("results % x", r.B)
		}
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := fs.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
