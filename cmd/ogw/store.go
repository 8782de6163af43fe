package main

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/cmd/ogw/config"
	"ogw/vfs"
)

// openEngine opens what stores.
func openEngine(ctx context.Context, c *config.Config, b budgets, log *slog.Logger) (*cluster.Cluster, error) {
	// config.Validate knows no other engine.
	e, err := local.Open(ctx, local.Options{
		Dir: c.Cluster.Dir, Logger: log, CacheBytes: int64(c.Cluster.Cache), NetworkFS: c.Cluster.NetworkFS,
		MemTableBytes: b.memTable,
	})
	return e, explain(err)
}

// vfsConfig is the namespace's part of the configuration.
func vfsConfig(c *config.Config, log *slog.Logger) (vfs.Config, error) {
	keys, err := clusterKeys(c)
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
		Reserved:    domains(c),
		Async:       c.Cluster.Durability == string(vfs.Async),
	}, err
}

// domains returns the service domains of all S3 gateways, in lower case.
func domains(c *config.Config) []string {
	var out []string
	for _, g := range c.Gateways {
		for _, d := range g.Domains {
			out = append(out, strings.ToLower(strings.Trim(d, ".")))
		}
	}
	return out
}
