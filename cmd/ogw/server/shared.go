package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/etcd"
	"ogw/cluster/local"
	"ogw/cluster/postgres"
	"ogw/cluster/readcache"
	"ogw/cluster/s3"
	"ogw/cmd/ogw/config"
	"ogw/vfs"
)

const (
	// openPause is between two tries to reach the servers of a shared store.
	openPause = 2 * time.Second
	// joinWait is beyond what Join waits for.
	joinWait = vfs.MaxTakeover + 30*time.Second
)

// opener is who opens a store.
type opener struct {
	version  string
	budgets  budgets
	openWait time.Duration // for servers that do not answer
	serves   bool          // with background work, not for one command
	finds    bool          // makes no store
	log      *slog.Logger
}

// maxOpenWait is the openWait of a process that serves: servers that start together with it are
// there by then, and a supervisor learns before long that they are not.
const maxOpenWait = time.Minute

// openShared opens a store in servers of others, for this process alone or beside
// others, as cluster.gateways says. What does not answer is tried again for by.openWait.
func openShared(ctx context.Context, c *config.Config, by opener) (*cluster.Cluster, error) {
	folder, err := local.OpenFolder(c.Cluster.Dir, c.Cluster.NetworkFS, by.log)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for told := false; ; {
		joined, err := joinShared(ctx, c, folder, by)
		if err == nil {
			joined.KV = &inFolder{joined.KV, folder}
			return keepReads(joined, c, by)
		}
		if !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > by.openWait || ctx.Err() != nil {
			return nil, errors.Join(err, folder.Close())
		}
		if !told {
			by.log.Warn("the store does not answer, it is tried again", "for", by.openWait, "err", err)
			told = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(openPause):
		}
	}
}

// readCacheFolder, in the data folder, has what was read of blobs.
const readCacheFolder = "readcache"

// keepReads has what is read of blobs kept, for who serves.
func keepReads(joined *cluster.Cluster, c *config.Config, by opener) (*cluster.Cluster, error) {
	if !by.serves {
		return joined, nil
	}
	kept, err := readcache.New(joined.Blobs, readcache.Options{Memory: int64(c.Cluster.Cache),
		Dir: filepath.Join(c.Cluster.Dir, readCacheFolder), Disk: int64(c.Cluster.ReadCache), Log: by.log})
	if err != nil {
		return nil, errors.Join(err, joined.Close())
	}
	joined.Blobs = kept
	return joined, nil
}

// inFolder is the metadata of a store, whose data folder is free when it is closed.
type inFolder struct {
	cluster.KV
	folder io.Closer
}

// Close implements cluster.KV.
func (k *inFolder) Close() error { return errors.Join(k.KV.Close(), k.folder.Close()) }

func joinShared(ctx context.Context, c *config.Config, folder *local.Folder, by opener) (joined *cluster.Cluster, err error) {
	halves := &cluster.Cluster{Name: c.Cluster.Engine}
	peers, err := openPeers(&c.Cluster, &by)
	if err != nil {
		return nil, err
	}
	if peers != nil {
		halves.Peers = peers
		defer func() {
			if err != nil {
				err = errors.Join(err, peers.Close())
			}
		}()
	}
	if halves.KV, err = openMetadata(ctx, &c.Cluster, peers, by.log); err != nil {
		return nil, fmt.Errorf("cluster.metadata: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, halves.KV.Close())
		}
	}()
	if by.finds {
		if err := findStore(ctx, &c.Cluster, halves.KV); err != nil {
			return nil, err
		}
	}
	if halves.Blobs, err = openObjects(ctx, &c.Cluster, by.log); err != nil {
		return nil, fmt.Errorf("cluster.objects: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, halves.Blobs.Close())
		}
	}()
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	me := vfs.Gateway{ID: rand.Uint64(), Host: host, PID: os.Getpid(), Version: by.version, Started: time.Now(), Beside: c.Cluster.Gateways == config.ManyGateways, Serves: by.serves, Restores: by.serves}
	if me.Ended, err = folder.Enter(me.ID); err != nil {
		by.log.Warn("if this process ends without leaving the store, the next one waits for it", "err", err)
	}
	return vfs.Join(ctx, halves, me, by.log)
}

// findStore fails where the metadata have no store: a name with a slip in it would make
// another one.
func findStore(ctx context.Context, c *config.Cluster, kv cluster.KV) error {
	there, err := vfs.IsStore(ctx, kv)
	if err != nil {
		return fmt.Errorf("cluster.metadata: %w", err)
	}
	if !there {
		return fmt.Errorf("%w: %s has none with the name %q", cluster.ErrNoStore, c.Metadata, c.Store)
	}
	return nil
}

func openMetadata(ctx context.Context, c *config.Cluster, peers *coherence.Client, log *slog.Logger) (cluster.KV, error) {
	m, err := c.ParseMetadata()
	if err != nil {
		return nil, err
	}
	if m.PostgreSQL != "" {
		return opened(postgres.Open(ctx, postgres.Options{URL: m.PostgreSQL, Password: c.MetadataPassword, Store: c.Store, Peers: peers}))
	}
	o := etcd.Options{Endpoints: m.Etcd, Prefix: c.Store + "/", Username: m.User, Password: c.MetadataPassword, Peers: peers}
	if m.TLS {
		var cert *certificate
		if c.MetadataCert != "" {
			if cert, err = newCertificate(c.MetadataCert, c.MetadataKey, log); err != nil {
				return nil, err
			}
		}
		var ca *authorities
		if c.MetadataCA != "" {
			if ca, err = newAuthorities(c.MetadataCA, log); err != nil {
				return nil, err
			}
		}
		o.TLS = tlsOf(ca, cert)
	}
	return opened(etcd.Open(ctx, o))
}

// opened keeps a nil pointer from being an interface.
func opened[T cluster.KV](kv T, err error) (cluster.KV, error) {
	if err != nil {
		return nil, err
	}
	return kv, nil
}

func openObjects(ctx context.Context, c *config.Cluster, log *slog.Logger) (cluster.Blobs, error) {
	where, err := c.ParseObjects()
	if err != nil {
		return nil, err
	}
	if where.Pool != "" {
		return openPool(ctx, c, where)
	}
	o := s3.Options{Endpoint: where.Endpoint, Bucket: where.Bucket, Prefix: c.Store + "/", Region: c.ObjectsRegion, AccessKey: c.ObjectsKey, SecretKey: c.ObjectsSecret}
	if c.ObjectsCA != "" {
		ca, err := newAuthorities(c.ObjectsCA, log)
		if err != nil {
			return nil, err
		}
		o.TLS = tlsOf(ca, nil)
	}
	b, err := s3.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return b, nil
}
