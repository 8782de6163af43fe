package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ogw/cmd/ogw/audit"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/mounts"
	"ogw/vfs"
)

// flushWait bounds the last flush: with a drained process it is short, and a stuck
// disk must not keep the process for ever.
const flushWait = 2 * time.Minute

// namespace is the store's namespace, and the mounts of it.
type namespace struct {
	fs     *vfs.FS
	mounts *mounts.Table
	// credentials is where root's key is kept besides the store.
	credentials *credentials
}

// openNamespace is the second step. What it returns is to be closed after an error
// too.
func openNamespace(ctx context.Context, cfg *config.Config, opt *Options, e *engine) (n *namespace, err error) {
	n = &namespace{}
	vc, err := vfsConfig(cfg, opt.Log)
	if err != nil {
		return n, err
	}
	vc.Restore = func(ctx context.Context, fs *vfs.FS) (err error) {
		n.mounts, err = openMounts(ctx, cfg, opt, e, fs)
		return err
	}
	if n.fs, err = vfs.Open(ctx, e.store, vc); err != nil {
		return n, explain(err)
	}
	forgetKeys()
	sealing := n.fs.SealState()
	tellSealing(sealing, opt.Log)
	e.audit.sealed(sealing)
	if err = e.meters.addStore(n.fs); err != nil {
		return n, err
	}
	n.credentials = openCredentials(cfg, vc, n.fs, opt.Log)
	return n, e.meters.addMounts(func() int { return len(n.mounts.List()) })
}

func openMounts(ctx context.Context, cfg *config.Config, opt *Options, e *engine, fs *vfs.FS) (*mounts.Table, error) {
	return mounts.Open(ctx, mounts.Config{
		FS: fs, Dir: cfg.Cluster.Dir, Log: opt.Log, Returns: !opt.UntilUnmounted, Observe: e.meters.fuse,
		Done: e.audit.fuse(fs), DoneAll: e.audit.log.Wants(audit.Data), Audit: e.audit.mounted,
	})
}

// close ends the mounts and flushes what was written.
func (n *namespace) close() error {
	if n.mounts != nil {
		n.mounts.Close()
	}
	if n.fs == nil {
		return nil
	}
	flush, cancel := context.WithTimeout(context.Background(), flushWait)
	defer cancel()
	if err := n.fs.Close(flush); err != nil {
		return fmt.Errorf("last flush: %w", err)
	}
	return nil
}

// vfsConfig is the namespace's part of the configuration.
func vfsConfig(c *config.Config, log *slog.Logger) (vfs.Config, error) {
	keys, err := Keys(c)
	return vfs.Config{
		Keys: keys,
		// Who makes a store may write to it through its mount, too.
		RootUID: uint32(os.Geteuid()), RootGID: uint32(os.Getegid()),
		Logger:      log,
		FileMode:    uint32(c.Cluster.FileMode),
		DirMode:     uint32(c.Cluster.DirMode),
		NoAtime:     c.Cluster.NoAtime,
		InlineBytes: int(c.Cluster.Inline),
		DirtyBytes:  int64(c.Cluster.Dirty),
		ScrubBytes:  int64(c.Cluster.Scrub),
		Reserved:    c.ReservedBuckets(),
		Async:       c.Cluster.Durability == string(vfs.Async),
	}, err
}
