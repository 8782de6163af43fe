package admin

import (
	"context"

	"ogw/cluster"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// namespace is what the API shows and changes of a vfs.FS, by what for.
type namespace struct {
	accounts
	buckets
	blobs
	state
}

func namespaceOf(fs *vfs.FS) namespace { return namespace{fs, fs, fs, fs} }

type accounts interface {
	Users() *users.Registry
	IAM() *iam.Directory
	Simulate(ctx context.Context, who string, actions, resources []string, values policy.Values) ([]vfs.Simulated, error)
}

type buckets interface {
	ListBuckets(ctx context.Context, after string, limit int) ([]vfs.BucketInfo, error)
	HeadBucket(ctx context.Context, name string) (vfs.BucketInfo, error)
	CreateBucket(ctx context.Context, name string, owner *vfs.Cred) (vfs.BucketInfo, error)
	DeleteBucket(ctx context.Context, name string) error
	BucketUsage(ctx context.Context, name string) (objects, bytes int64, err error)
	BucketDurability(ctx context.Context, bucket string) (vfs.Durability, error)
	SetBucketDurability(ctx context.Context, bucket string, d vfs.Durability) error
}

// blobs are where bytes lie, and in what state.
type blobs interface {
	Whereis(ctx context.Context, path string) (vfs.ObjectInfo, []vfs.ExtentLocation, error)
	Check(ctx context.Context, o vfs.CheckOptions) (vfs.CheckReport, error)
	Scrub(ctx context.Context) vfs.ScrubState
	Quarantine(ctx context.Context, trace bool) ([]vfs.DamagedBlob, error)
	Release(ctx context.Context, ids ...cluster.BlobID) (blobs int, bytes int64, err error)
	BeginBackup(ctx context.Context, c vfs.BackupConfig) (*vfs.Backup, error)
}

// state is that of the whole.
type state interface {
	FSID() uint64
	StatFS(ctx context.Context) (vfs.StatFS, error)
	Gateways(ctx context.Context) ([]vfs.Peer, error)
	Durability() vfs.Durability
	SealState() vfs.SealState
	PurgeAll(ctx context.Context, path string) (inodes int, others []vfs.Purged, err error)
}
