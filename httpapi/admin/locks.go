package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
)

// Lock is an advisory lock that is held, or a request that waits for one.
type Lock struct {
	Door   string `json:"door"`             // "nfs", "fuse" or "go"
	Client string `json:"client,omitempty"` // address of an NFS client, directory of a FUSE mount
	Host   string `json:"host,omitempty"`   // as an NFS client calls itself
	PID    uint32 `json:"pid,omitempty"`    // of the process, on the client's machine
	// Owner tells the owners of one client apart: text, or hexadecimal digits
	// behind "0x".
	Owner string `json:"owner"`
	Path  string `json:"path,omitempty"` // bucket/key; none: the file has been unlinked
	Inode uint64 `json:"inode"`
	// Kind is "range" (fcntl), "flock", or "share" (what DOS clients reserve
	// when they open a file).
	Kind string `json:"kind"`
	// Type is "shared" or "exclusive"; of a share what its holder does with
	// the file: "read", "write" or "read-write".
	Type string `json:"type"`
	// Deny is what a share keeps others from: "none", "read", "write" or "read-write".
	Deny    string `json:"deny,omitempty"`
	Offset  uint64 `json:"offset"`
	Length  uint64 `json:"length"` // 0: to the end of the file, wherever that is
	Waiting bool   `json:"waiting"`
}

// LockFilter chooses locks; an empty field chooses all.
type LockFilter struct {
	Path   string // of a file, or of a directory for all below
	Client string // as in Lock.Client or Lock.Host
}

// LockList answers ListLocks.
type LockList struct {
	Locks []Lock `json:"locks"`
	More  bool   `json:"more"`  // there are more than are listed
	Grace bool   `json:"grace"` // after a restart, clients are taking back theirs
}

// FreeLocks asks to end all locks of an NFS client.
type FreeLocks struct {
	Client string `json:"client"` // address or host name
	// Force frees those of a client that is connected: its programs go on,
	// believing that they hold them.
	Force bool `json:"force,omitempty"`
}

// FreedClient is a client whose locks were ended.
type FreedClient struct {
	Gateway string `json:"gateway"`
	Client  string `json:"client"`
	Host    string `json:"host"`
	Locks   int    `json:"locks"` // held, and requests that waited
	Shares  int    `json:"shares"`
}

// FreedLocks answers FreeLocks.
type FreedLocks struct {
	Clients []FreedClient `json:"clients"`
}

// Locks knows the locks of a process. Errors are those of vfs and apierr.
type Locks interface {
	ListLocks(ctx context.Context, f LockFilter) (LockList, error)
	// FreeLocks fails with vfs.ErrNotExist if no such client holds any, and
	// with vfs.ErrBusy if it is connected.
	FreeLocks(ctx context.Context, q FreeLocks) (FreedLocks, error)
}

func (s *Server) listLocks(r *http.Request, _ httprouter.Params) (any, error) {
	if s.Locks == nil { // locks live as long as their process
		return LockList{Locks: []Lock{}}, nil
	}
	q := r.URL.Query()
	f := LockFilter{Client: q.Get("client")}
	if path := q.Get("path"); path != "" {
		f.Path = strings.TrimSuffix(StoredPath(path, s.Domains), "/")
	}
	return s.Locks.ListLocks(r.Context(), f)
}

func (s *Server) freeLocks(r *http.Request, _ httprouter.Params) (any, error) {
	var q FreeLocks
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if q.Client == "" {
		return nil, fmt.Errorf("%w: name the client whose locks are to be freed", apierr.ErrBadRequest)
	}
	if s.Locks == nil {
		return nil, errNoProcess
	}
	return s.Locks.FreeLocks(r.Context(), q)
}
