package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cmd/ogw/audit"
	"ogw/fusemount"
	"ogw/nfsserver"
	"ogw/vfs"
)

// lookupLimit bounds the search for names of what a line is about.
const lookupLimit = time.Second

// nfs returns the function that gets the calls of a gateway; nil if nothing is written.
func (a *auditor) nfs(fs *vfs.FS, gateway string) func(*nfsserver.Record) {
	if a.log == nil {
		return nil
	}
	return func(r *nfsserver.Record) {
		e := audit.Event{Class: classOf("nfs", r.Operation), Door: "nfs", Gateway: gateway, Operation: r.Operation,
			UID: int64(r.UID), From: r.Client.String(), Agent: r.Machine, Detail: r.Reason,
			Result: resultOf(r.Status != nfsserver.OK, r.Refused())}
		if r.Rights {
			e.Class = audit.Admin
		}
		if r.Status != nfsserver.OK {
			e.Error = r.Status.String()
		}
		if r.XID != 0 {
			e.Request = fmt.Sprintf("%08x", r.XID)
		}
		if r.Claimed != r.UID {
			e.Detail = strings.TrimSpace(fmt.Sprintf("claims uid=%d %s", r.Claimed, e.Detail))
		}
		e.Fill = func(e *audit.Event) {
			e.Target = r.Path
			fill(fs, e, entry{r.Ino, r.Name}, entry{r.ToDir, r.ToName})
		}
		if r.Operation == "CONNECT" {
			e.UID, e.Fill = audit.NoUID, nil
		}
		a.log.Record(e)
	}
}

// fuse returns the function that gets the requests of mounts; nil if nothing is
// written.
func (a *auditor) fuse(fs *vfs.FS) func(*fusemount.Record) {
	if a.log == nil {
		return nil
	}
	return func(r *fusemount.Record) {
		e := audit.Event{Class: classOf("fuse", r.Operation), Door: "fuse", Gateway: r.Dir, Operation: r.Operation,
			UID: int64(r.UID), From: fmt.Sprintf("unix:uid=%d,pid=%d", r.UID, r.PID), Detail: r.Detail,
			Result: resultOf(r.Errno != 0, r.Refused())}
		if r.Rights {
			e.Class = audit.Admin
		}
		if r.Errno != 0 {
			e.Error = unix.ErrnoName(r.Errno)
		}
		e.Fill = func(e *audit.Event) { fill(fs, e, entry{r.Ino, r.Name}, entry{r.ToDir, r.ToName}) }
		a.log.Record(e)
	}
}

func resultOf(failed, refused bool) audit.Result {
	switch {
	case refused:
		return audit.Refused
	case failed:
		return audit.Failed
	}
	return audit.OK
}

// entry is an inode, or a name in one; ino 0 is none.
type entry struct {
	ino  vfs.Ino
	name string
}

// fill finds the names behind numbers: what was acted on, and who has the uid.
func fill(fs *vfs.FS, e *audit.Event, at, to entry) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	if at.ino != 0 {
		e.Target = at.path(ctx, fs)
	}
	if to.ino != 0 {
		e.Detail = strings.TrimSpace("to=" + to.path(ctx, fs) + " " + e.Detail)
	}
	if e.UID < 0 {
		return
	}
	if u, err := fs.Users().ByUID(ctx, uint32(e.UID)); err == nil {
		e.User, e.UserID = u.Name, string(u.ID)
	}
}

// path returns a path of the namespace; what has no name any more is its number.
func (e entry) path(ctx context.Context, fs *vfs.FS) string {
	key, err := fs.KeyOf(ctx, e.ino)
	if err != nil {
		key = fmt.Sprintf("inode:%d", e.ino)
		if e.name != "" {
			key += "/"
		}
	}
	if err == nil {
		key = "/" + key
	}
	return key + e.name
}

// mounted records a mount that was made or that ended, however that was.
func (a *auditor) mounted(operation, dir, detail string) {
	e := audit.Event{Class: classOf("fuse", operation), Door: "fuse", Gateway: dir, Operation: operation, Target: dir,
		UID: audit.NoUID, From: a.self, Result: audit.OK, Detail: detail}
	a.log.Record(e)
}
