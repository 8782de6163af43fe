package vfs

import (
	"cmp"
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fsck"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
)

// CheckOptions of Check.
type CheckOptions = fsck.Options

// CheckReport is what Check found.
type CheckReport = fsck.Report

// Problem is one finding of Check.
type Problem = fsck.Problem

// MaxProblems bounds what a CheckReport lists; the rest is counted.
const MaxProblems = fsck.MaxProblems

// Check walks everything (ogw check). It runs beside the work of this and
// other processes: what concerns several keys is looked at within one
// snapshot, and what concerns blobs is looked at again before it is reported.
//
// Kinds of problems, * where Repair mends them:
//
//	inode-record, dentry-record, extent-record, part-record, other-record   undecodable
//	unreachable*      inode without a dentry: goes to /lost+found
//	nlink*            count of links differs from the links
//	dangling-entry*   dentry of an inode that does not exist
//	entry-type, entry-mode, extra-entry, entry-without-parent, directory-loop
//	link-record*, long-name*, stray-times*, stray-attribute*, stray-orphan*, stray-lock*, unlisted-lock*, stray-bucket*
//	upload-record*, stray-part*
//	queue-record      undecodable: what it stands for is not deleted
//	shared-record*    inode and content record disagree on sharing
//	content-form*     inode says that its content is one inline extent, and it is not
//	leaked-content*   shared content that nobody holds or refers to
//	stray-ref*        hold on a content that nothing uses
//	missing-ref*      extent that refers to a content which is not held, and is there
//	orphan-content*   extents that belong to nothing
//	overlap, beyond-size
//	orphan-blob*      blob that nothing names
//	missing-blob      in use, and gone or without all its bytes, as far as that
//	                  shows without reading it (cluster.BlobProber)
//	blob-size, corrupt-data, checksum
//	damaged-blob      in quarantine and in use, see DamagedBlob
//	quarantine-record*  that names no blob
func (fs *FS) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	return fsck.Check(quarantine.FoundBy(cluster.Strict(ctx), "check"), fsck.Config{
		Store: checkStore{fs}, Blobs: fs.quarantine, Leftovers: fs.leftovers,
	}, o)
}

// checkStore implements fsck.Store.
type checkStore struct{ fs *FS }

func (s checkStore) View(ctx context.Context, fn func(r cluster.Reader) error) error {
	return s.fs.view(ctx, fn)
}

func (s checkStore) Update(ctx context.Context, fn fsck.Repair) error {
	return s.fs.update(ctx, func(t cluster.Txn, o *op) error { return fn(t, repairer{o}) })
}

func (s checkStore) Left(r cluster.Reader) (uint64, error) { return s.fs.session.Left(r) }

func (s checkStore) Oldest() uint64 { return s.fs.ids.Oldest() }

func (s checkStore) Pinned(c ContentID) bool { return s.fs.contents.Pins.Pinned(c) }

func (s checkStore) ReadFile(ctx context.Context, ino Ino) (n *record.Inode, crc uint64, err error) {
	var rd *content.Reader
	err = s.fs.view(ctx, func(r cluster.Reader) (err error) {
		if n, err = record.GetInode(r, ino); err != nil || n.Content == 0 {
			return err
		}
		rd, err = s.fs.contents.Open(ctx, r, n)
		return err
	})
	if err != nil || rd == nil {
		return n, 0, err
	}
	defer rd.Close()
	var damage error
	crc, err = rd.Sum(ctx, func(e error) error {
		damage = cmp.Or(damage, e)
		return nil
	})
	return n, crc, cmp.Or(err, damage)
}
