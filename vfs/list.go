package vfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

const (
	// listChunk is how many entries of a directory below the first one are
	// read at once. It doubles while the directory goes on: small enough that
	// deep trees do not read what the page has no room for.
	listChunk = 128
	// maxListPassed bounds how many entries that are no objects (special
	// files, dangling links) one page passes over; it then ends early.
	maxListPassed = 10_000
	// maxListBytes bounds the keys and common prefixes of one page together:
	// a thousand keys of usual length fit ten times, and a page of the longest
	// keys stays small, however a door writes them.
	maxListBytes = 512 << 10
)

// ListObjects returns one page of the keys of a bucket in byte order: a seek
// and a scan, never a sort. Keys of explicit directories ("x/") are among
// them, implied directories are not (S3 ListObjectsV2).
//
// The keys are those that GetObject finds: a symbolic link is listed as the
// object that it leads to within the bucket, and one that leads to none is
// left out, as special files are. A directory is a common prefix without a
// look at what it holds; one that holds nothing but such entries is one too.
// Keys over MaxKeyBytes, which deep directories of the POSIX doors have, are
// left out as well: no call of an object door takes them.
// A page may hold less than MaxKeys and still be Truncated.
func (fs *FS) ListObjects(ctx context.Context, bucket string, o ListOptions) (ListResult, error) {
	ctx = fs.objectCtx(ctx, ObjectName{bucket, o.Prefix})
	if o.MaxKeys < 0 {
		return ListResult{}, fmt.Errorf("page of %d keys: %w", o.MaxKeys, ErrInvalid)
	}
	if bucket != "" && !ValidBucketName(bucket) {
		return ListResult{}, fmt.Errorf("bucket %q: %w", bucket, ErrNoSuchBucket)
	}
	o.MaxKeys = min(o.MaxKeys, MaxListKeys)
	var l *lister
	var heir *record.Inode // who owns all objects, if not who wrote them
	mark := fs.session.Open.Mark()
	err := fs.view(ctx, func(r cluster.Reader) error {
		l = &lister{fs: fs, o: o, j: fs.rights.On(ctx, r, 0), whole: bucket == ""}
		root := keypath.RootStep
		if bucket != "" {
			e, err := keypath.BucketEntry(r, bucket)
			if err != nil {
				return err
			}
			root = keypath.StepTo(e)
			l.j.In(root)
		}
		if err := l.begin(root); err != nil && !errors.Is(err, errPageFull) {
			return err
		}
		if err := l.fill(); err != nil || o.NamesOnly {
			return err
		}
		var err error
		heir, err = l.j.OwnerOfAll()
		return err
	})
	if err != nil {
		return ListResult{}, err
	}
	for i := range l.page.Objects {
		if ob := &l.page.Objects[i]; !o.NamesOnly && fs.session.Open.LeftSince(mark, ob.Ino) {
			if err := fs.listAgain(ctx, ob); err != nil {
				return ListResult{}, err
			}
		}
		if heir != nil {
			l.page.Objects[i].UID = heir.UID
		}
	}
	return l.page, nil
}

// listAgain describes an object whose file was flushed and closed after the
// snapshot of the page. One that is gone by now stays as it was.
func (fs *FS) listAgain(ctx context.Context, ob *ObjectInfo) error {
	for mark := fs.session.Open.Mark(); ; mark = fs.session.Open.Mark() {
		err := fs.view(ctx, func(r cluster.Reader) error {
			n, err := record.GetInode(r, ob.Ino)
			if err == nil {
				*ob = fs.listInfo(ob.Key, n)
			}
			return err
		})
		if errors.Is(err, ErrStale) {
			return nil
		}
		if err != nil || !fs.session.Open.LeftSince(mark, ob.Ino) {
			return err
		}
	}
}

// errPageFull ends the walk of a lister.
var errPageFull = errors.New("page is full")

// lister walks the tree depth-first for one page.
type lister struct {
	fs    *FS
	o     ListOptions
	j     rights.Judge
	trail []keypath.Step // directories from the bucket's to the one being read
	whole bool           // keys begin with the name of a bucket
	skip  string         // nothing with this prefix any more: a common prefix that was told
	page  ListResult
	inos  []*record.Inode // of page.Objects, as far as known
	last  string          // last key or common prefix told
	// passed counts the entries that are no objects.
	passed int
	bytes  int // of the keys and common prefixes told
}

// run walks straight to the directory of the prefix and lists from there.
func (l *lister) run(root keypath.Step) error {
	prefix, after := l.o.Prefix, l.o.StartAfter
	if l.o.MaxKeys == 0 || l.tooLong(prefix) || after > prefix && !strings.HasPrefix(after, prefix) {
		return nil
	}
	if strings.HasPrefix(after, prefix) && l.commonPrefix(after) == after {
		l.skip = after // the page before ended with it
	}
	l.trail = append(l.trail, root)
	path := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if path != "" {
		for _, name := range strings.Split(path[:len(path)-1], "/") {
			e, err := record.GetDentry(l.j.R, l.trail[len(l.trail)-1].Ino, name, true)
			if err != nil || e == nil {
				return err
			}
			l.trail = append(l.trail, keypath.StepTo(e))
		}
	}
	if hidden, err := l.hiddenWay(); hidden || err != nil {
		return err
	}
	ino := l.trail[len(l.trail)-1].Ino
	if path != "" && path == prefix {
		if err := l.ownKey(ino, path); err != nil {
			return err
		}
	}
	return l.directory(ino, path, l.o.MaxKeys+1)
}

// listEntry is one dentry with the key that it begins.
type listEntry struct {
	key string // ends in "/" for a directory
	ino Ino
	typ uint32
	record.Tells
}

func (e *listEntry) dir() bool { return e.typ == ModeDirectory }

// directory lists what lies below a directory whose keys begin with path.
func (l *lister) directory(ino Ino, path string, chunk int) error {
	base := record.DentryPrefix(ino)
	start, end := l.bounds(base, path)
	var buf []listEntry
	for first := chunk; ; {
		var err error
		if buf, err = l.read(buf[:0], base, start, end, path, chunk); err != nil || len(buf) == 0 {
			return err
		}
		more := len(buf) == chunk
		l.page.Objects = slices.Grow(l.page.Objects, min(len(buf), l.room()))
		l.inos = slices.Grow(l.inos, min(len(buf), l.room()))
		start = append(append(slices.Clip(base), buf[len(buf)-1].key[len(path):]...), 0)
		chunk = min(2*chunk, MaxListKeys+1)
		for i := 0; i < len(buf); i++ {
			if l.skip == "" || !strings.HasPrefix(buf[i].key, l.skip) {
				if err := l.entry(&buf[i]); err != nil {
					return err
				}
			}
			if l.skip == "" || !strings.HasPrefix(buf[i].key, l.skip) {
				continue
			}
			if len(l.skip) <= len(path) {
				return nil // the rest of this directory is below it
			}
			n := sort.Search(len(buf)-i, func(n int) bool { return !strings.HasPrefix(buf[i+n].key, l.skip) })
			if i += n - 1; i == len(buf)-1 {
				if start = cluster.PrefixEnd(append(slices.Clip(base), l.skip[len(path):]...)); start == nil {
					return nil
				}
				chunk = first
			}
		}
		if !more || string(start) >= string(end) {
			return nil
		}
	}
}

// bounds returns the range of dentry keys that the prefix and StartAfter
// leave of a directory.
func (l *lister) bounds(base []byte, path string) (start, end []byte) {
	start, end = base, cluster.PrefixEnd(base)
	if len(l.o.Prefix) > len(path) {
		start = append(slices.Clip(base), l.o.Prefix[len(path):]...)
		end = cluster.PrefixEnd(start)
	}
	if rel, ok := strings.CutPrefix(l.o.StartAfter, path); ok && rel != "" {
		from := append(slices.Clip(base), rel...)
		if i := strings.IndexByte(rel, '/'); i >= 0 {
			from = from[:len(base)+i+1] // the directory that StartAfter lies in
		} else {
			from = append(from, 0)
		}
		if string(from) > string(start) {
			start = from
		}
	}
	return start, end
}

// read appends up to limit entries to buf.
func (l *lister) read(buf []listEntry, base, start, end []byte, path string, limit int) ([]listEntry, error) {
	key := []byte(path)
	o := cluster.ScanOptions{Limit: limit}
	err := l.j.R.Scan(start, end, o, func(k, v []byte) error {
		ino, typ, tells, ok := record.DecodeDentryValue(v)
		if !ok {
			return fmt.Errorf("%w: dentry %q", ErrCorrupt, k)
		}
		key = append(key[:len(path)], k[len(base):]...)
		buf = append(buf, listEntry{
			key: string(key),
			ino: ino,
			typ: typ, Tells: tells,
		})
		return nil
	})
	return buf, err
}

// entry lists one entry of a directory, and of a directory what is below.
func (l *lister) entry(e *listEntry) error {
	if l.tooLong(e.key) {
		return l.pass(e.key) // a directory with all that is below
	}
	if !e.dir() {
		return l.leaf(e)
	}
	at := keypath.Step{Ino: e.ino, Tells: e.Tells}
	if hidden, err := l.hidden(at, e.key); err != nil {
		return err
	} else if hidden {
		return l.pass(e.key)
	}
	// A directory where StartAfter lies may hold nothing behind it.
	if !strings.HasPrefix(l.o.StartAfter, e.key) {
		if cp := l.commonPrefix(e.key); cp != "" {
			return l.tellPrefix(cp)
		}
	}
	if slices.ContainsFunc(l.trail, func(s keypath.Step) bool { return s.Ino == e.ino }) {
		return fmt.Errorf("%w: directory %d, %q, is below itself", ErrCorrupt, e.ino, e.key)
	}
	if err := l.ownKey(e.ino, e.key); err != nil {
		return err
	}
	l.trail = append(l.trail, at)
	err := l.directory(e.ino, e.key, min(listChunk, l.room()+1))
	l.trail = l.trail[:len(l.trail)-1]
	return err
}

// leaf lists an entry that is no directory.
func (l *lister) leaf(e *listEntry) error {
	var n *record.Inode
	switch e.typ {
	case ModeRegular:
	case ModeSymlink:
		var err error
		if n, err = l.j.FollowLink(l.trail, e.ino); errors.Is(err, ErrNoSuchKey) || errors.Is(err, ErrAccess) {
			return l.pass(e.key)
		} else if err != nil {
			return err
		}
	default:
		return l.pass(e.key)
	}
	return l.tell(e.key, e.ino, n)
}

// pass counts an entry that is no object.
func (l *lister) pass(key string) error {
	if l.passed++; l.passed < maxListPassed {
		return nil
	}
	l.page.Truncated, l.page.Next = true, key
	return errPageFull
}

// ownKey lists the key of a directory itself, if it is explicit.
func (l *lister) ownKey(ino Ino, key string) error {
	if key <= l.o.StartAfter {
		return nil
	}
	n, err := record.GetInode(l.j.R, ino)
	if err != nil || !n.Has(record.FlagExplicit) {
		return err
	}
	return l.tell(key, ino, n)
}

// tell adds a key to the page, or the common prefix that stands for it.
func (l *lister) tell(key string, ino Ino, n *record.Inode) error {
	if cp := l.commonPrefix(key); cp != "" {
		return l.tellPrefix(cp)
	}
	if l.room() == 0 || l.bytes >= maxListBytes {
		return l.full()
	}
	l.page.Objects = append(l.page.Objects, ObjectInfo{Key: key, Ino: ino})
	l.inos = append(l.inos, n)
	l.bytes += len(key)
	l.last = key
	return nil
}

func (l *lister) tellPrefix(cp string) error {
	if l.room() == 0 || l.bytes >= maxListBytes {
		return l.full()
	}
	l.page.CommonPrefixes = append(l.page.CommonPrefixes, cp)
	l.bytes += len(cp)
	l.skip, l.last = cp, cp
	return nil
}

// tooLong tells whether a key is longer than any call takes (see parseKey).
func (l *lister) tooLong(key string) bool {
	if l.whole {
		return len(keypath.BelowTop(key)) > MaxKeyBytes
	}
	return len(key) > MaxKeyBytes
}

// room is how many keys and common prefixes the page can still take.
func (l *lister) room() int {
	return l.o.MaxKeys - len(l.page.Objects) - len(l.page.CommonPrefixes)
}

func (l *lister) full() error {
	l.page.Truncated, l.page.Next = true, l.last
	return errPageFull
}

// commonPrefix returns the part of key up to the first delimiter behind the
// prefix, "" if there is none.
func (l *lister) commonPrefix(key string) string {
	if l.o.Delimiter == "" || len(key) <= len(l.o.Prefix) {
		return ""
	}
	i := strings.Index(key[len(l.o.Prefix):], l.o.Delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(l.o.Prefix)+i+len(l.o.Delimiter)]
}

// fill reads the inodes of the page in one go and describes the objects.
func (l *lister) fill() error {
	if l.o.NamesOnly {
		for i := range l.page.Objects {
			l.page.Objects[i].Dir = strings.HasSuffix(l.page.Objects[i].Key, "/")
		}
		return nil
	}
	if err := l.readInodes(); err != nil {
		return err
	}
	objects := l.page.Objects[:0]
	for i, o := range l.page.Objects {
		n := l.inos[i]
		if n == nil {
			l.fs.log.Error("entry without inode", "key", o.Key, "inode", o.Ino)
			continue
		}
		objects = append(objects, l.fs.listInfo(o.Key, n))
	}
	l.page.Objects = objects
	return nil
}

// readInodes reads the inodes that are not known yet, sorted by number.
func (l *lister) readInodes() error {
	order := make([]int, 0, len(l.inos))
	for i, n := range l.inos {
		if n == nil {
			order = append(order, i)
		}
	}
	objects := l.page.Objects
	slices.SortFunc(order, func(a, b int) int { return int(int64(objects[a].Ino) - int64(objects[b].Ino)) })
	keys := make([][]byte, len(order))
	for i, at := range order {
		keys[i] = record.InodeKey(objects[at].Ino)
	}
	values, err := l.j.R.GetMany(keys)
	if err != nil {
		return err
	}
	for i, at := range order {
		if values[i] == nil {
			continue
		}
		if l.inos[at], err = record.DecodeInode(objects[at].Ino, values[i]); err != nil {
			return err
		}
	}
	return nil
}
