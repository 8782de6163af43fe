package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"ogw/cmd/ogw/mounts"
	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/nfsserver"
	"ogw/nfsserver/nlm"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// maxListedLocks bounds a listing: more than anybody reads, and some 30 MB as
// JSON.
const maxListedLocks = 100_000

// lockBook shows the operator the locks of all doors, and ends those of NFS
// clients that will not come back. It implements admin.Locks.
type lockBook struct {
	fs       *vfs.FS
	log      *slog.Logger
	mounts   *mounts.Table
	gateways []lockGateway // fixed once wired
}

// lockGateway is an NFS gateway; each keeps its own clients.
type lockGateway struct {
	name   string
	server *nfsserver.Server
}

// ListLocks implements admin.Locks.
func (b *lockBook) ListLocks(ctx context.Context, f admin.LockFilter) (admin.LockList, error) {
	out := admin.LockList{Locks: []admin.Lock{}, Grace: b.fs.Locks().InGrace()}
	file, below, err := b.chosen(ctx, f.Path)
	if err != nil {
		return out, err
	}
	keep := func(ino vfs.Ino) bool { return file == 0 || ino == file }
	l := lister{ctx: ctx, fs: b.fs, mounts: b.mounts.LockClients(), paths: map[vfs.Ino]string{},
		below: below, client: f.Client, out: &out}
	held, more, err := b.fs.Locks().List(ctx, maxListedLocks, func(e *lock.Entry) bool { return keep(vfs.Ino(e.File)) })
	if err == nil {
		l.gateways, err = b.others(ctx)
	}
	if err != nil {
		return out, err
	}
	out.More = more
	for i := range held {
		x := lockOf(&held[i])
		x.Gateway = l.gateways[held[i].Gateway]
		if err := l.add(x, vfs.Ino(held[i].File), held[i].Lock.Owner, held[i].Lock.PID); err != nil {
			return out, err
		}
	}
	return out, nil
}

// others are the gateways that share locks with this one, by their numbers.
func (b *lockBook) others(ctx context.Context) (map[uint64]string, error) {
	if b.fs.Exclusive() {
		return nil, nil
	}
	list, err := b.fs.Gateways(ctx)
	names := make(map[uint64]string, len(list))
	for _, g := range list {
		names[g.ID] = fmt.Sprintf("%s, process %d", g.Host, g.PID)
	}
	return names, err
}

// chosen returns what a path means: one file, or what is below a directory,
// by the beginning of its stored path.
func (b *lockBook) chosen(ctx context.Context, path string) (file vfs.Ino, below string, err error) {
	if path == "" {
		return 0, "", nil
	}
	a, err := b.fs.Resolve(ctx, vfs.Root, path, true)
	if err == nil && a.IsDir() {
		below, err = b.fs.KeyOf(ctx, a.Ino)
	} else {
		file = a.Ino
	}
	if err != nil {
		return 0, "", fmt.Errorf("%s: %w", path, err)
	}
	return file, below, nil
}

// lockOf is an entry without its owner and file.
func lockOf(e *lock.Entry) admin.Lock {
	x := admin.Lock{Kind: "range", Type: "shared", Offset: e.Lock.Start, Waiting: e.Waiting}
	switch e.Space {
	case lock.Flock:
		x.Kind = "flock"
	case lock.Share:
		x.Kind, x.Type, x.Deny = "share", shareMode(e.Lock.Type.Access()), shareMode(e.Lock.Type.Deny())
	}
	if e.Lock.Type == lock.Exclusive {
		x.Type = "exclusive"
	}
	if e.Lock.End != lock.EOF {
		x.Length = e.Lock.End - e.Lock.Start + 1
	}
	return x
}

// shareMode is what a share reservation is for, or denies, in words.
func shareMode(m uint8) string { return [...]string{"none", "read", "write", "read-write"}[m&3] }

// lister puts a listing together.
type lister struct {
	ctx      context.Context
	fs       *vfs.FS
	mounts   map[string][]string // directories, by lock.Owner.Client
	paths    map[vfs.Ino]string
	gateways map[uint64]string // others, by number
	below    string            // what paths must begin with
	client   string            // whose locks; "": everybody's
	out      *admin.LockList
}

// add completes a lock and lists it if it is one of those asked for.
func (l *lister) add(x admin.Lock, ino vfs.Ino, o lock.Owner, pid uint32) error {
	x.Inode, x.PID, x.Owner = uint64(ino), pid, ownerID([]byte(o.ID))
	dirs, mounted := l.mounts[o.Client]
	switch n, ok := nlm.OwnerOf(o); {
	case ok:
		x.Door, x.Client, x.Host, x.PID, x.Owner = "nfs", n.Addr.String(), n.Host, n.PID, ownerID(n.ID)
		x.Server = n.Server.String()
	case mounted, strings.HasPrefix(o.Client, fusemount.LockPrefix):
		x.Door, x.Client = "fuse", strings.Join(dirs, ",")
	default:
		x.Door = "go"
	}
	if c := l.client; c != "" && c != x.Client && !slices.Contains(dirs, c) && !strings.EqualFold(c, x.Host) {
		return nil
	}
	path, known := l.paths[ino]
	if !known {
		var err error
		path, err = l.fs.KeyOf(l.ctx, ino)
		if err != nil && !errors.Is(err, vfs.ErrNotExist) && !errors.Is(err, vfs.ErrStale) {
			return err
		}
		l.paths[ino] = path
	}
	if !strings.HasPrefix(path, l.below) {
		return nil
	}
	x.Path = path
	l.out.Locks = append(l.out.Locks, x)
	return nil
}

// ownerID is an opaque owner for people: Linux clients send text.
func ownerID(id []byte) string {
	if len(id) > 0 && !slices.ContainsFunc(id, func(c byte) bool { return c < ' ' || c > '~' }) {
		return string(id)
	}
	return fmt.Sprintf("0x%x", id)
}

// FreeLocks implements admin.Locks. What it did stands in the log: the user who
// misses a lock must find out why.
func (b *lockBook) FreeLocks(ctx context.Context, q admin.FreeLocks) (admin.FreedLocks, error) {
	out := admin.FreedLocks{Clients: []admin.FreedClient{}}
	for _, g := range b.gateways {
		if err := g.spared(ctx, &q); err != nil {
			return out, err
		}
	}
	for _, g := range b.gateways {
		freed, err := g.server.FreeLocks(ctx, q.Client)
		for _, h := range freed {
			b.log.Warn("locks of an NFS client were freed by the operator", "gateway", g.name, "client", h.Addr, "name", h.Host, "server", h.Server,
				"locks", h.Locks, "shares", h.Shares, "forced", q.Force)
			out.Clients = append(out.Clients,
				admin.FreedClient{Gateway: g.name, Client: h.Addr.String(), Host: h.Host, Server: h.Server.String(), Locks: h.Locks, Shares: h.Shares})
		}
		if err != nil {
			return out, err
		}
	}
	if len(out.Clients) == 0 {
		return out, fmt.Errorf("%w: no NFS client %s holds locks or waits for any", vfs.ErrNotExist, q.Client)
	}
	return out, nil
}

// spared fails with vfs.ErrBusy if a client that is meant is connected: its
// programs would go on, believing that they hold the locks.
func (g *lockGateway) spared(ctx context.Context, q *admin.FreeLocks) error {
	if q.Force {
		return nil
	}
	list, err := g.server.LockHolders(ctx, q.Client)
	if err != nil {
		return err
	}
	for _, h := range list {
		for _, c := range g.server.Clients() {
			if c.Remote.Addr() == h.Addr {
				return fmt.Errorf("%w: %s (%s) is connected to gateway %s, and its programs would go on as if they held the locks; "+
					"--force frees them nevertheless", vfs.ErrBusy, h.Addr, h.Host, g.name)
			}
		}
	}
	return nil
}
