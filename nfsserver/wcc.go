package nfsserver

import (
	"context"

	"ogw/cluster"
	"ogw/vfs"
)

// wccBeside writes the wcc_data of a WRITE. A client that is not told of attributes from
// before takes those from after for its own doing: so, where others change the file, it gets
// them with these, and none if another process changed the file in between.
func (q *request) wccBeside(before, after *vfs.Attr) {
	if before != nil && before.Others != after.Others {
		after = nil
	}
	putWcc(&q.out.Writer, before, after, q.s.sealer.fsid)
}

// dirChange brackets an operation that changes one directory, to report its
// attributes from before and after. With them a client keeps what it has
// cached of the directory through its own changes. They are sent only if
// nothing else changed the directory in between, or the client would take
// the change of another for its own.
type dirChange struct {
	q      *request
	dir    vfs.Ino
	before vfs.Attr
	begun  uint64
	known  bool
}

// change begins an operation on dir.
func (q *request) change(ctx context.Context, dir vfs.Ino) dirChange {
	c := dirChange{q: q, dir: dir}
	if !q.s.fs.Exclusive() {
		return c // another gateway may change it at any time
	}
	begun, ended := q.s.fs.Changes(dir)
	if begun != ended {
		return c
	}
	before, err := q.s.fs.GetAttr(ctx, dir)
	c.before, c.begun, c.known = before, begun, err == nil
	return c
}

// done writes the wcc_data of an operation that changed dir exactly once;
// changed reports whether it did. What others did to the directory concurrently may
// not be durable yet: waiting for that would make every operation in a busy
// directory take as long as two, and the client only compares the attributes
// with those it gets next.
func (c *dirChange) done(ctx context.Context, changed bool) {
	a, err := c.q.s.fs.GetAttr(cluster.Relaxed(ctx), c.dir)
	var before, after *vfs.Attr
	if err == nil {
		after = &a
	}
	if begun, _ := c.q.s.fs.Changes(c.dir); c.known && changed && after != nil && begun == c.begun+1 {
		before = &c.before
	}
	putWcc(&c.q.out.Writer, before, after, c.q.s.sealer.fsid)
}
