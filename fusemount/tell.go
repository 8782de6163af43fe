package fusemount

import (
	"context"
	"strings"
	"syscall"

	"ogw/cluster"
	"ogw/vfs"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// tell calls Options.Done for refusals and changes of rights, with DoneAll for
// everything.
func (o *observed) tell(operation string, h *fuse.InHeader, x *extra, s fuse.Status) {
	r := Record{Operation: operation, Errno: syscall.Errno(s)}
	r.Rights = s == fuse.OK && (x.rights || o.changesBucket(operation, h, x))
	if !r.Rights && !r.Refused() && !o.raw.opt.DoneAll {
		return
	}
	r.Ino = o.raw.ino(h.NodeId)
	if x.toDir != 0 {
		r.ToDir = o.raw.ino(x.toDir)
	}
	r.Dir, r.UID, r.PID = strings.Join(o.raw.conn.dirs(), ","), h.Uid, h.Pid
	r.Name, r.ToName, r.Detail = x.name, x.toName, x.detail
	o.raw.opt.Done(&r)
}

// changesBucket reports whether a request that succeeded made, removed or
// renamed a directory of the root.
func (o *observed) changesBucket(operation string, h *fuse.InHeader, x *extra) bool {
	inRoot := func(node uint64) bool { return node != 0 && o.raw.ino(node) == vfs.RootIno }
	switch operation {
	case "mkdir", "rmdir":
		return inRoot(h.NodeId)
	case "rename":
		return inRoot(h.NodeId) || inRoot(x.toDir)
	}
	return false
}

// isBucket reports whether node, whose attributes are a, is a bucket, or the root; only if
// somebody wants to know. It must not wait until the node is durable.
func (o *observed) isBucket(node uint64, a *fuse.Attr) bool {
	if a.Mode&syscall.S_IFMT != syscall.S_IFDIR || o.raw.opt.Done == nil {
		return false
	}
	at, err := o.raw.fs.GetAttr(cluster.Relaxed(context.Background()), o.raw.ino(node))
	return err == nil && at.Parent == vfs.RootIno
}
