package s3

import (
	"context"
	"io"

	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// namespace is what this door needs of a vfs.FS, by what for.
type namespace struct {
	accounts
	reader
	writer
	uploads
	buckets
	configuration
	grants
}

func namespaceOf(fs *vfs.FS) namespace { return namespace{fs, fs, fs, fs, fs, fs, fs} }

// accounts identify the caller, and give the early answer to whether they may.
type accounts interface {
	Users() *users.Registry
	IAM() *iam.Directory
	Authorize(ctx context.Context, act vfs.Action, name vfs.ObjectName) (vfs.BucketInfo, error)
}

type reader interface {
	GetObject(ctx context.Context, name vfs.ObjectName, o vfs.GetOptions) (*vfs.Object, error)
	HeadObject(ctx context.Context, name vfs.ObjectName, o vfs.GetOptions) (vfs.ObjectInfo, error)
	ListObjects(ctx context.Context, bucket string, o vfs.ListOptions) (vfs.ListResult, error)
}

type writer interface {
	PutObject(ctx context.Context, name vfs.ObjectName, body io.Reader, o vfs.PutOptions) (vfs.ObjectInfo, error)
	AppendObject(ctx context.Context, name vfs.ObjectName, off int64, body io.Reader, o vfs.PutOptions) (vfs.ObjectInfo, error)
	CopyObject(ctx context.Context, src, dst vfs.ObjectName, o vfs.CopyOptions) (vfs.ObjectInfo, error)
	RenameObject(ctx context.Context, bucket, from, to string, o vfs.RenameOptions) error
	DeleteObject(ctx context.Context, name vfs.ObjectName, o vfs.DeleteOptions) (existed bool, err error)
	DeleteObjects(ctx context.Context, bucket string, keys []string) ([]vfs.DeleteResult, error)
	SetObjectTags(ctx context.Context, name vfs.ObjectName, query string) error
}

type uploads interface {
	CreateUpload(ctx context.Context, name vfs.ObjectName, o vfs.PutOptions, alg vfs.ChecksumAlgorithm, composite bool) (vfs.UploadInfo, error)
	GetUpload(ctx context.Context, name vfs.UploadName) (vfs.UploadInfo, error)
	PutPart(ctx context.Context, name vfs.UploadName, number int, body io.Reader, o vfs.PutOptions) (vfs.PartInfo, error)
	CopyPart(ctx context.Context, name vfs.UploadName, number int, from vfs.PartSource) (vfs.PartInfo, error)
	ListParts(ctx context.Context, name vfs.UploadName, after, limit int) ([]vfs.PartInfo, bool, error)
	ListUploads(ctx context.Context, bucket string, o vfs.ListUploadsOptions) (vfs.UploadPage, error)
	CompleteUpload(ctx context.Context, name vfs.UploadName, o vfs.CompleteOptions) (vfs.ObjectInfo, error)
	AbortUpload(ctx context.Context, name vfs.UploadName) error
}

type buckets interface {
	ListBuckets(ctx context.Context, after string, limit int) ([]vfs.BucketInfo, error)
	HeadBucket(ctx context.Context, name string) (vfs.BucketInfo, error)
	CreateBucketWith(ctx context.Context, name string, owner *vfs.Cred, with vfs.BucketOptions) (vfs.BucketInfo, error)
	DeleteBucket(ctx context.Context, name string) error
}

// configuration is what a bucket keeps beside its entries.
type configuration interface {
	BucketConfig(ctx context.Context, bucket, name string) ([]byte, error)
	SetBucketConfig(ctx context.Context, bucket, name string, value []byte) error
	SetRequesterPays(ctx context.Context, bucket string, on bool) error
	BucketOwnership(ctx context.Context, bucket string) (vfs.Ownership, error)
	SetBucketOwnership(ctx context.Context, bucket string, own vfs.Ownership) error
	BucketPolicy(ctx context.Context, bucket string) (text []byte, public bool, err error)
	SetBucketPolicy(ctx context.Context, bucket string, text []byte) error
}

type grants interface {
	BucketGrants(ctx context.Context, name string) (vfs.BucketInfo, vfs.Grants, error)
	SetBucketGrants(ctx context.Context, name string, g vfs.Grants) error
	ObjectGrants(ctx context.Context, act vfs.Action, name vfs.ObjectName) (vfs.ObjectInfo, vfs.Grants, error)
	SetObjectGrants(ctx context.Context, name vfs.ObjectName, g vfs.Grants) error
}
