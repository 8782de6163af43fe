package vfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// purgePage is how many entries one snapshot of a purge covers.
const purgePage = 512

// purgeWait is how long PurgeAll waits for other gateways, beyond four times what its own
// purge took. Each learns of it with its next beat; one without a beat for so long answers
// its clients nothing from memory.
const purgeWait = session.LapseAfter

// Purged is what became of a purge at another gateway.
type Purged = session.Purged

// PurgeAll is Purge for all gateways that use the store beside one another. It returns what
// it touched here, and what the others answered, for which it waits some seconds.
func (fs *FS) PurgeAll(ctx context.Context, path string) (inodes int, others []Purged, err error) {
	begun := time.Now()
	if inodes, err = fs.Purge(ctx, path); err != nil {
		return 0, nil, err
	}
	others, err = fs.session.Purge(ctx, path, purgeWait+4*time.Since(begun))
	return inodes, others, fserr.Map(err)
}

// Purge drops path, and with a trailing slash all below it, from every cache
// of this process: what open files know of the store, through the
// Invalidators the caches of the kernels, and, for any path, what is known of the metadata of
// a store that others use, too. It returns the number of inodes
// touched. The store is unchanged. ErrNotExist.
func (fs *FS) Purge(ctx context.Context, path string) (int, error) {
	fs.session.Forget()
	info, err := fs.findPath(ctx, strings.TrimSuffix(path, "/"))
	if err != nil || info.Ino == 0 {
		info, err = fs.findPath(ctx, path)
	}
	if err != nil {
		return 0, err
	}
	events := []feed.Event{{Ino: info.Ino, Data: true}}
	err = fs.view(ctx, func(r cluster.Reader) error {
		n, err := record.GetInode(r, info.Ino)
		if err == nil && n.Ino != RootIno && n.Nlink > 0 {
			events = append(events, feed.Event{Entry: true, Ino: n.Parent, Name: n.Name})
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := fs.purgeEvents(ctx, events); err != nil {
		return 0, err
	}
	if !strings.HasSuffix(path, "/") || info.Mode&ModeTypeMask != ModeDirectory {
		return 1, nil
	}
	p := purge{fs: fs}
	err = p.below(ctx, info.Ino)
	return p.count + 1, err
}

// purge walks the tree below a directory, depth first.
type purge struct {
	fs    *FS
	trail []Ino // directories from the first to the one being walked
	count int   // entries
}

func (p *purge) below(ctx context.Context, dir Ino) error {
	if slices.Contains(p.trail, dir) {
		return fmt.Errorf("%w: directory %d is below itself", ErrCorrupt, dir)
	}
	p.trail = append(p.trail, dir)
	defer func() { p.trail = p.trail[:len(p.trail)-1] }()
	prefix := record.DentryPrefix(dir)
	from := prefix
	for n := purgePage; n == purgePage; {
		var events []feed.Event
		var dirs []Ino
		err := p.fs.view(ctx, func(r cluster.Reader) error {
			n, events, dirs = 0, events[:0], dirs[:0]
			return r.Scan(from, cluster.PrefixEnd(prefix), cluster.ScanOptions{Limit: purgePage}, func(k, v []byte) error {
				e, err := record.DecodeDentry(k[len(prefix):], v)
				if err != nil {
					return err
				}
				n++
				from = append(append(from[:0:0], k...), 0)
				events = append(events, feed.Event{Entry: true, Ino: dir, Name: e.Name}, feed.Event{Ino: e.Ino, Data: true})
				if e.Dir {
					dirs = append(dirs, e.Ino)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if err := p.fs.purgeEvents(ctx, events); err != nil {
			return err
		}
		p.count += n
		for _, d := range dirs {
			if err := p.below(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// purgeEvents notifies open files and every watcher, whoever asked, and has the engine
// forget what it keeps of their blobs.
func (fs *FS) purgeEvents(ctx context.Context, events []feed.Event) error {
	if err := fs.forgetBlobs(ctx, events); err != nil {
		return err
	}
	for _, e := range events {
		fs.attrs.Forget(e.Ino)
		if of := fs.opened(e.Ino); of != nil && !e.Entry {
			of.contentCommitted()
			of.dropSnapshot(noContent)
		}
	}
	fs.feed.Notify(context.Background(), events...)
	return nil
}

// forgetBlobs has the engine forget what it keeps of the blobs of files.
func (fs *FS) forgetBlobs(ctx context.Context, events []feed.Event) error {
	var keys [][]byte
	for _, e := range events {
		if e.Data {
			keys = append(keys, record.InodeKey(e.Ino))
		}
	}
	var contents []uint64
	err := fs.view(ctx, func(r cluster.Reader) error {
		contents = contents[:0]
		values, err := r.GetMany(keys)
		for i := 0; i < len(values) && err == nil; i++ {
			if values[i] == nil { // removed meanwhile
				continue
			}
			var n *record.Inode
			if n, err = record.DecodeInode(record.InoOfKey(keys[i]), values[i]); err == nil {
				contents, err = appendContents(contents, r, n)
			}
		}
		return err
	})
	if err == nil {
		cluster.ForgetBlobs(fs.blobs, contents...)
	}
	return err
}

// appendContents appends the contents that have blobs of an inode to list: its own, and those
// that this refers to.
func appendContents(list []uint64, r cluster.Reader, n *record.Inode) ([]uint64, error) {
	if n.Content == 0 {
		return list, nil
	}
	list = append(list, uint64(n.Content))
	if !n.Has(record.FlagRefs) {
		return list, nil
	}
	prefix, last := record.ExtentPrefix(n.Content), n.Content
	err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		_, e, err := record.ParseExtent(k, v)
		if err == nil && e.Kind == record.ExtentRef && e.Src != last { // Check reports one that is damaged
			list, last = append(list, uint64(e.Src)), e.Src
		}
		return nil
	})
	return list, err
}
