package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/damage"
	"ogw/vfs/internal/quarantine"
)

// DamagedBlob is a blob in quarantine: it failed verification, and there is no
// second copy.
type DamagedBlob = quarantine.DamagedBlob

// ScrubState describes what the scrub does.
type ScrubState = quarantine.ScrubState

// DefaultScrubBytes is how fast the scrub reads, per second.
const DefaultScrubBytes = quarantine.DefaultScrubBytes

// blobUsers is what the quarantine asks for the files of damaged blobs.
type blobUsers struct{ *FS }

// Users implements quarantine.Files.
func (u blobUsers) Users(ctx context.Context, found map[cluster.BlobID][]Ino) error {
	return damage.Users(ctx, u.contents, found)
}

func (fs *FS) newQuarantine() *quarantine.Blobs {
	return quarantine.New(quarantine.Config{KV: fs.kv, Engine: fs.blobs, Feed: fs.feed, Files: blobUsers{fs}, Log: fs.log, Now: fs.cfg.Now})
}

// openQuarantine begins to keep and to look for damage.
func (fs *FS) openQuarantine(ctx context.Context) (err error) {
	if err := fs.quarantine.Load(ctx); err != nil {
		return err
	}
	fs.scrub, err = quarantine.NewScrubber(ctx, fs.quarantine, fs, fs.cfg.ScrubBytes)
	return err
}

// Quarantine lists the damaged blobs, the oldest finding first. With trace it
// looks for the files of those that were found since that was last done, which
// takes as long as a walk over all inodes.
func (fs *FS) Quarantine(ctx context.Context, trace bool) ([]DamagedBlob, error) {
	if err := fs.quarantine.Refresh(ctx); err != nil {
		return nil, err
	}
	if trace {
		if err := fs.quarantine.Trace(ctx, false); err != nil {
			return nil, err
		}
	}
	return fs.quarantine.List(ctx), nil
}

// Release deletes damaged blobs that were set aside: those named, or without
// names all of them. It returns how many they were, and their bytes, which
// come back to the medium like those of any deleted file. ErrNotExist for what
// is not in quarantine, ErrBusy for what files use; then nothing is released.
func (fs *FS) Release(ctx context.Context, ids ...cluster.BlobID) (blobs int, bytes int64, err error) {
	return fs.quarantine.Release(ctx, ids...)
}

// Scrub returns the state of the scrub, whichever process runs it, and what is damaged,
// without the files (see Quarantine): as far as this process knows, if the store does not
// answer.
func (fs *FS) Scrub(ctx context.Context) ScrubState {
	state, err := fs.scrub.Current(ctx)
	if err != nil {
		fs.log.Debug("the state of the scrub cannot be read", "err", err)
	}
	return state
}
