package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/backup"
	"ogw/vfs/internal/format"
)

// BackupLease is how long a Backup lives that nobody uses.
const BackupLease = backup.Lease

var (
	// ErrBackupEnded means that a Backup does not hold its data any more.
	ErrBackupEnded = backup.ErrEnded
	// ErrBlobDeleted means that a blob was due for deletion at the instant:
	// no file has it, and a pass of the collector that broke off may have
	// deleted it.
	ErrBlobDeleted = backup.ErrBlobDeleted
)

// Backup is one instant of the namespace, and holds what it consists of. It is
// safe for concurrent use.
type Backup = backup.Backup

// BackupConfig is what becomes of the secrets. A backup holds none in clear.
type BackupConfig = backup.Config

// BackupInfo describes a Backup.
type BackupInfo = backup.Info

// BackupSecrets counts the secrets in what Backup.Pairs returned: keys of users,
// and secrets of the store.
type BackupSecrets = backup.Secrets

// BackupBlob is a blob that a Backup names.
type BackupBlob = backup.Blob

// Restore fills an empty store with what Backup.Pairs returned. The blobs are
// the caller's, and come first. It is for one goroutine.
type Restore = backup.Restore

// RestoreConfig is what becomes of what a Backup held.
type RestoreConfig = backup.RestoreConfig

// RestoreLocked describes the secrets of a restored store that it cannot open.
type RestoreLocked = backup.Locked

// BeginRestore begins, or goes on. It returns ErrExist if the store holds
// something else.
func BeginRestore(ctx context.Context, c *cluster.Cluster, o RestoreConfig) (*Restore, error) {
	return backup.BeginRestore(ctx, c, o)
}

// Move makes a store what Backup.Pairs returned of another one, in passes. The blobs are
// the caller's. It is for one goroutine, and one pass.
type Move = backup.Move

// MoveConfig of a Move.
type MoveConfig = backup.MoveConfig

// BeginMove begins a pass. It returns ErrExist if the store holds something else, and
// cluster.ErrMismatch if its blobs belong to another one.
func BeginMove(ctx context.Context, c *cluster.Cluster, o MoveConfig) (*Move, error) {
	return backup.BeginMove(ctx, c, o)
}

// MarkMoved makes the store one that was moved to a place: Open refuses it from then on,
// but with that as Config.MovedTo. It is durable when it returns.
func (fs *FS) MarkMoved(ctx context.Context, place string) error {
	return format.MarkMoved(ctx, fs.kv, fs.super, place, fs.cfg.Now())
}

// UndoMove makes a store that was moved one again, as it was then. It returns where it was
// moved to, "" if it was not.
func UndoMove(ctx context.Context, c *cluster.Cluster) (place string, err error) {
	return format.UndoMove(ctx, c.KV)
}

// BeginBackup takes an instant. It returns ErrBusy beside too many others,
// ErrInvalid if secrets are in clear and BackupConfig does not say what becomes
// of them. What other processes that use the store have in their buffers is not
// in it.
func (fs *FS) BeginBackup(ctx context.Context, c BackupConfig) (*Backup, error) {
	return backup.Begin(ctx, fs.backupStore(), c)
}

func (fs *FS) backupStore() backup.Store {
	return backup.Store{
		KV: fs.kv, Super: fs.super, Contents: fs.contents, Blobs: fs.quarantine, IDs: &fs.ids, Keys: fs.cfg.Keys,
		Gate: &fs.cut, Reading: fs.session.Reading, Flush: fs.flushAll, Log: fs.log, Now: fs.cfg.Now,
	}
}
