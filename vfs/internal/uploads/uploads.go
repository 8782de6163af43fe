package uploads

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// Namespace runs transactions, and finds objects.
type Namespace interface {
	View(ctx context.Context, fn func(r cluster.Reader) error) error
	Update(ctx context.Context, fn func(t *Txn) error) error
	// ReadObject calls fn with the inode of an object in one snapshot, which holds
	// all that this process wrote to it, for who may read it. fn may be called again.
	ReadObject(ctx context.Context, k *keypath.Key, fn func(r cluster.Reader, n *record.Inode) error) (*record.Inode, error)
}

// Txn is one transaction of an operation.
type Txn struct {
	cluster.Txn
	NowNS    int64
	Contents *content.Change
	NewID    func() (uint64, error)
}

// Uploads are the uploads of a namespace.
type Uploads struct {
	Namespace Namespace
	KV        cluster.KV
	Rights    *rights.Rules
	Contents  *content.Store
	Bodies    *receive.Receiver
	Log       *slog.Logger
}

// Info describes an upload.
type Info struct {
	ID                string
	Key               string
	Initiated         time.Time
	Meta              record.ObjectMeta
	UID               uint32
	ChecksumAlgorithm checksum.Algorithm // "" if none was asked for
	ChecksumComposite bool
}

// InfoOf describes u.
func InfoOf(u *record.Upload) Info {
	return Info{
		ID: keypath.UploadID(u), Key: u.Key, Initiated: time.Unix(0, u.InitiatedNS), Meta: u.Meta,
		UID: u.UID, ChecksumAlgorithm: u.Alg, ChecksumComposite: u.Composite,
	}
}

// New returns an upload that has no bucket yet, by the caller. Its object will be
// owner's.
func New(ctx context.Context, id uint64, owner *perm.Cred) *record.Upload {
	u := &record.Upload{ID: record.ContentID(id)}
	rand.Read(u.Token[:])
	s := rights.SubjectOf(ctx)
	if s != nil {
		u.By.User = s.User
	}
	u.By.KeepsOwner, u.UID, u.GID = rights.KeepsOwner(s), owner.UID(), owner.GID()
	return u
}

// Begin stores a new upload of a bucket, which it notes in it, and makes that
// explicit if it was implied: with an upload in it, it must not vanish with its last
// object.
func Begin(t *Txn, u *record.Upload, bucket string) error {
	var err error
	if u.Bucket, err = keypath.UploadBucket(t, bucket); err != nil {
		return err
	}
	n, err := record.GetInode(t, u.Bucket)
	if err != nil {
		return err
	}
	if !n.Has(record.FlagExplicit) || !n.Has(record.FlagUploads) {
		n.Set(record.FlagExplicit|record.FlagUploads, true)
		if err := record.PutInode(t, n); err != nil {
			return err
		}
	}
	u.InitiatedNS = t.NowNS
	if err := t.Set(u.StoreKey(), u.Encode()); err != nil {
		return err
	}
	return t.Set(record.UploadIDKey(u.ID), u.StoreKey())
}

// Find reads an upload, for who may do act with it; ErrNoSuchUpload.
func (s *Uploads) Find(ctx context.Context, name *keypath.UploadKey, act rights.Action) (u *record.Upload, err error) {
	err = s.Namespace.View(ctx, func(r cluster.Reader) (err error) {
		u, err = s.Rights.Upload(ctx, r, name, act)
		return err
	})
	return u, err
}
