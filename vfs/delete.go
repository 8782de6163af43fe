package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// DeleteObject removes an object; an absent key is no error unless Cond asks
// for it. existed reports that. For "x/" it removes the directory's own content and
// its explicit mark: the directory stays while it has entries. Entries that
// are no objects (special files, dangling links) are removed too, when they
// are named.
func (fs *FS) DeleteObject(ctx context.Context, name ObjectName, o DeleteOptions) (existed bool, err error) {
	ctx = fs.objectCtx(ctx, name)
	k, err := parseKey(name)
	if err != nil {
		return false, err
	}
	p := publication{key: &k, cond: &o.Cond, remove: true, onlyEmpty: o.Empty}
	if !objects.NoConditions(&o.Cond) {
		if err := fs.precheck(ctx, &p); err != nil {
			return false, err
		}
	}
	err = fs.update(ctx, func(t cluster.Txn, o *op) (err error) {
		existed, err = o.deleteObject(t, &p)
		return err
	})
	return existed && err == nil, fs.tooDeep(err, &k)
}

func (o *op) deleteObject(t cluster.Txn, p *publication) (existed bool, err error) {
	at, err := keypath.Locate(t, p.key)
	if err != nil {
		return false, err
	}
	j := o.fs.rights.OnKey(o.ctx, t, p.key, &at)
	n, err := checkTarget(&j, p, &at)
	if err != nil || n == nil {
		return false, err
	}
	if p.key.Dir && p.onlyEmpty {
		empty, err := isEmpty(t, n.Ino)
		if err != nil {
			return false, err
		}
		if !empty {
			return false, fmt.Errorf("key %q: %w", p.key.Key, ErrNotEmpty)
		}
	}
	if p.key.Dir {
		return o.deleteDirKey(t, n)
	}
	if err := o.removeEntry(t, at.Dir(), at.Entry); err != nil {
		return false, err
	}
	return true, o.dropLink(t, n, at.Dir(), at.Entry.Name)
}

// deleteDirKey makes a directory implied and takes its own content and
// metadata; if it is empty, it goes.
func (o *op) deleteDirKey(t cluster.Txn, n *record.Inode) (existed bool, err error) {
	if !n.Has(record.FlagExplicit) {
		return false, nil
	}
	n.Set(record.FlagExplicit, false)
	if err := o.contents.Set(t, n, &content.Written{}); err != nil {
		return false, err
	}
	if err := o.setMeta(t, n, &ObjectMeta{}); err != nil {
		return false, err
	}
	n.CtimeNS = o.nowNS
	empty, err := isEmpty(t, n.Ino)
	if err != nil {
		return false, err
	}
	if !empty {
		return true, record.PutInode(t, n)
	}
	e := &record.Dentry{Name: n.Name, Dir: true, Ino: n.Ino, Mode: ModeDirectory}
	if err := o.dropDir(t, n); err != nil {
		return false, err
	}
	return true, o.removeEntry(t, n.Parent, e)
}

const (
	// deleteBatch is how many keys one transaction removes in an engine
	// without limits: enough that the commit costs little for each, and few
	// enough that a conflict costs little.
	deleteBatch = 250
	// deleteOps is how many operations the removal of one key takes at the
	// most, if it is simple; what takes more is split.
	deleteOps = 12
)

// DeleteObjects removes many objects with few transactions; each key has its
// own result, in order (S3 DeleteObjects).
func (fs *FS) DeleteObjects(ctx context.Context, bucket string, keys []string) ([]DeleteResult, error) {
	ctx = fs.objectCtx(ctx, ObjectName{bucket, ""})
	if bucket != "" {
		if err := fs.mayDelete(ctx, bucket); err != nil {
			return nil, err
		}
	}
	results := make([]DeleteResult, len(keys))
	var todo []deleteItem
	for i, key := range keys {
		results[i].Key = key
		k, err := parseKey(ObjectName{bucket, key})
		if err != nil {
			results[i].Err = err
			continue
		}
		todo = append(todo, deleteItem{k, &results[i]})
	}
	size := deleteBatch
	if ops := fs.kv.Limits().Ops; ops > 0 {
		size = max(ops/deleteOps, 1)
	}
	for len(todo) > 0 {
		n := min(size, len(todo))
		fs.deleteItems(ctx, todo[:n])
		todo = todo[n:]
	}
	return results, ctx.Err()
}

// mayDelete returns ErrNoSuchBucket, or ErrAccess if no key of the bucket may go.
func (fs *FS) mayDelete(ctx context.Context, bucket string) error {
	return fs.view(ctx, func(r cluster.Reader) error { return fs.rights.RemoveAny(ctx, r, bucket) })
}

type deleteItem struct {
	key    keypath.Key
	result *DeleteResult
}

// deleteItems removes the keys in one transaction, or after a conflict, or
// where one of them fails, in smaller ones.
func (fs *FS) deleteItems(ctx context.Context, items []deleteItem) {
	err := fs.update(ctx, func(t cluster.Txn, o *op) error { return o.deleteMany(t, items) })
	if err == nil {
		return
	}
	whole := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed) || errors.Is(err, ErrNoSuchBucket) || ctx.Err() != nil
	if len(items) == 1 || whole {
		for i := range items {
			if !errors.Is(err, ErrNoSuchBucket) { // removed meanwhile, with all keys
				items[i].result.Err = fs.tooDeep(err, &items[i].key)
			}
		}
		return
	}
	half := len(items) / 2
	fs.deleteItems(ctx, items[:half])
	fs.deleteItems(ctx, items[half:])
}

// deleteMany removes keys: files directory by directory, reading all records
// of a directory's files at once, then the keys of directories.
func (o *op) deleteMany(t cluster.Txn, items []deleteItem) error {
	groups := make(map[string][]*deleteItem)
	var order []string
	for i := range items {
		k := &items[i].key
		items[i].result.Err = nil // of an earlier run
		if k.Dir {
			continue
		}
		path := k.Key[:len(k.Key)-len(k.Last())]
		if groups[path] == nil {
			order = append(order, path)
		}
		groups[path] = append(groups[path], &items[i])
	}
	for _, path := range order {
		if err := o.deleteFiles(t, groups[path]); err != nil {
			return err
		}
	}
	for i := range items {
		if k := &items[i].key; k.Dir {
			p := publication{key: k, cond: &Preconditions{}, remove: true}
			_, err := o.deleteObject(t, &p)
			switch {
			case err == nil, errors.Is(err, ErrNoSuchBucket):
			case rights.IsDenial(err):
				items[i].result.Err = err
			default:
				return err
			}
		}
	}
	return nil
}

// deleteFiles removes files of one directory.
func (o *op) deleteFiles(t cluster.Txn, items []*deleteItem) error {
	at, err := keypath.Locate(t, &items[0].key)
	if errors.Is(err, ErrNoSuchBucket) {
		return nil // removed meanwhile, with all keys
	}
	if err != nil {
		return err
	}
	j := o.fs.rights.OnKey(o.ctx, t, &items[0].key, &at)
	if items, err = removable(&j, items, &at); err != nil || len(items) == 0 {
		return err
	}
	if len(at.Missing) > 0 {
		return nil
	}
	dir := at.Dir()
	found, err := o.readRemovals(t, dir, items)
	if err == nil {
		found, err = spare(&j, at.Deepest(), found, items)
	}
	if err != nil || len(found) == 0 {
		return err
	}
	for i := range found {
		if err := o.deleteEntry(t, dir, &found[i].entry); err != nil {
			return err
		}
		if err := o.dropRemoval(t, dir, &found[i]); err != nil {
			return err
		}
	}
	d, err := record.GetInode(t, dir)
	if err != nil {
		return err
	}
	return o.prune(t, d, found[len(found)-1].entry.Key(dir))
}

// removable returns the items, of one directory, that the subject may delete as far
// as grants and policies decide; the others get the denial as result.
func removable(j *rights.Judge, items []*deleteItem, at *keypath.Place) (left []*deleteItem, err error) {
	keys := make([]*keypath.Key, len(items))
	for i, it := range items {
		keys[i] = &it.key
	}
	denials, err := j.RemoveEach(keys, at)
	if err != nil {
		return nil, err
	}
	for i, it := range items {
		if it.result.Err = denials[i]; it.result.Err == nil {
			left = append(left, it)
		}
	}
	return left, nil
}

// refuse makes a denial the result of the items of a name. It returns other errors.
func refuse(items []*deleteItem, name string, err error) error {
	if !rights.IsDenial(err) {
		return err
	}
	for _, it := range items {
		if it.key.Last() == name {
			it.result.Err = err
		}
	}
	return nil
}

// spare takes out of found what the subject must not remove from d.
func spare(j *rights.Judge, d keypath.Step, found []removal, items []*deleteItem) ([]removal, error) {
	dir, err := rights.HeldFlags(j.R, d)
	if err != nil {
		return nil, err
	}
	left := found[:0]
	for _, f := range found {
		err := j.Entry(d, f.n)
		if err == nil && f.n != nil {
			err = dir.CheckTake(perm.FlagsOf(f.n))
		}
		if err == nil {
			left = append(left, f)
		} else if err = refuse(items, f.entry.Name, err); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// removal is a file that is about to go.
type removal struct {
	entry record.Dentry
	n     *record.Inode
	first []byte // the extent at offset 0, if the content may be that alone and the inode does not show it
}

// readRemovals reads dentries, inodes and first extents of the files of dir
// that exist, with one GetMany each.
func (o *op) readRemovals(t cluster.Txn, dir Ino, items []*deleteItem) ([]removal, error) {
	names := make([][]byte, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, it := range items {
		if name := it.key.Last(); !seen[name] {
			seen[name] = true
			names = append(names, record.FileEntryKey(dir, name))
		}
	}
	values, err := t.GetMany(names)
	if err != nil {
		return nil, err
	}
	found := make([]removal, 0, len(names))
	inodes := make([][]byte, 0, len(names))
	for i, v := range values {
		if v == nil {
			continue
		}
		e, err := record.DecodeDentry(names[i][len(record.DentryPrefix(dir)):], v)
		if err != nil {
			return nil, err
		}
		found = append(found, removal{entry: e})
		inodes = append(inodes, record.InodeKey(e.Ino))
	}
	if values, err = t.GetMany(inodes); err != nil {
		return nil, err
	}
	var extents [][]byte
	var places []int
	linked := map[Ino]*record.Inode{} // several of the entries may be links of one file
	for i, v := range values {
		if v == nil {
			continue // an entry without inode goes, too
		}
		n, err := record.DecodeInode(found[i].entry.Ino, v)
		if err != nil {
			return nil, err
		}
		if n.Has(record.FlagLinks) {
			if known := linked[n.Ino]; known != nil {
				n = known
			}
			linked[n.Ino] = n
		}
		found[i].n = n
		if n.Content != 0 && !n.Has(record.FlagOneInline) && simpleFile(n) && n.Used == n.Size && n.Size <= int64(o.fs.cfg.InlineBytes) {
			extents = append(extents, record.ExtentKey(n.Content, 0))
			places = append(places, i)
		}
	}
	if values, err = t.GetMany(extents); err != nil {
		return nil, err
	}
	for i, at := range places {
		found[at].first = values[i]
	}
	return found, nil
}

// simpleFile reports whether nothing hangs on the file but its content.
func simpleFile(n *record.Inode) bool {
	return n.IsRegular() && n.Nlink == 1 && !n.Has(record.FlagLinks|record.FlagXattrs|record.FlagShared)
}

// dropRemoval takes the link off the inode. A file whose content is one
// inline extent, and that nobody may have open, goes without a scan.
func (o *op) dropRemoval(t cluster.Txn, dir Ino, f *removal) error {
	if f.n == nil {
		return nil
	}
	n := f.n
	inline := n.Content == 0 || n.Has(record.FlagOneInline)
	if len(f.first) > 0 {
		e, err := record.DecodeExtent(0, f.first)
		if err != nil {
			return err
		}
		inline = e.Kind == record.ExtentInline && e.Len == n.Size
	}
	if !inline || !simpleFile(n) || !o.fs.session.Alone() || o.removals.Begin(n.Ino) {
		return o.dropLink(t, n, dir, f.entry.Name)
	}
	o.feed.InodeChanged(n.Ino, false)
	if n.Content != 0 {
		if err := t.Delete(record.ExtentKey(n.Content, 0)); err != nil {
			return err
		}
	}
	return t.Delete(record.InodeKey(n.Ino))
}
