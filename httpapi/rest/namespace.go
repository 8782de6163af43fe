package rest

import (
	"context"
	"io"

	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// objects are what this door serves; vfs.FS has them. Their names have no bucket:
// keys are whole paths.
type objects interface {
	GetObject(ctx context.Context, name vfs.ObjectName, o vfs.GetOptions) (*vfs.Object, error)
	HeadObject(ctx context.Context, name vfs.ObjectName, o vfs.GetOptions) (vfs.ObjectInfo, error)
	ListObjects(ctx context.Context, bucket string, o vfs.ListOptions) (vfs.ListResult, error)
	MayPut(ctx context.Context, name vfs.ObjectName, cond vfs.Preconditions) (existed bool, in vfs.Ino, err error)
	PutObject(ctx context.Context, name vfs.ObjectName, body io.Reader, o vfs.PutOptions) (vfs.ObjectInfo, error)
	DeleteObject(ctx context.Context, name vfs.ObjectName, o vfs.DeleteOptions) (existed bool, err error)
	Accessed(ctx context.Context, ino vfs.Ino) (moved bool)
}

// accounts are those who may come with basic credentials; vfs.FS has them.
type accounts interface {
	Users() *users.Registry
	IAM() *iam.Directory
}
