package listing

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

const (
	// MaxKeys bounds a page, S3's.
	MaxKeys = 1000
	// listChunk is how many entries of a directory below the first one are
	// read at once. It doubles while the directory goes on: small enough that
	// deep trees do not read what the page has no room for.
	listChunk = 128
	// maxPassed bounds how many entries that are no objects (special
	// files, dangling links), or left out, one page passes over; it then ends early.
	maxPassed = 10_000
	// MaxBytes bounds the keys and common prefixes of one page together:
	// a thousand keys of usual length fit ten times, and a page of the longest
	// keys stays small, however a door writes them.
	MaxBytes = 512 << 10
)

// Options of a page of keys.
type Options struct {
	Prefix     string
	Delimiter  string // any string; "/" is the fast one
	StartAfter string // first key is greater than this
	MaxKeys    int    // 0 to MaxKeys
	// Names only: ETag, size and times stay zero (multi-delete, emptiness tests).
	NamesOnly bool
	// Text only: keys that are not UTF-8 are left out, and no page ends with one. It is
	// for who writes keys, and the Next that continues, as text.
	Text bool
}

// Page is one page of keys, in byte order.
type Page struct {
	Objects        []Object
	CommonPrefixes []string
	Truncated      bool
	Next           string
	// Heir is the bucket whose owner owns all objects, whoever wrote them; else nil.
	Heir *record.Inode
}

// Objects returns a page of the keys of a bucket that the subject of j may see; with
// bucket "" keys begin at the root. j is for no bucket yet.
func Objects(j rights.Judge, bucket string, o Options) (*Page, error) {
	l := &lister{o: o, j: j, whole: bucket == ""}
	root := keypath.RootStep
	if bucket != "" {
		e, err := keypath.BucketEntry(j.R, bucket)
		if err != nil {
			return nil, err
		}
		root = keypath.StepTo(e)
		l.j.In(root)
	}
	if err := l.begin(root); err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	if o.NamesOnly {
		return &l.page, nil
	}
	err := readInodes(l.j.R, l.page.Objects)
	if err == nil {
		l.page.Heir, err = l.j.OwnerOfAll()
	}
	return &l.page, err
}

// Names returns the keys below a directory, which begin at root, whoever may see them.
func Names(r cluster.Reader, root keypath.Step, o Options) (*Page, error) {
	o.NamesOnly = true
	l := &lister{o: o, j: rights.Judge{R: r, Bucket: root.Ino}}
	if err := l.run(root); err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return &l.page, nil
}

// errPageFull ends the walk of a lister.
var errPageFull = errors.New("page is full")

// lister walks the tree depth-first for one page.
type lister struct {
	o     Options
	j     rights.Judge
	trail []keypath.Step // directories from the bucket's to the one being read
	whole bool           // keys begin with the name of a bucket
	skip  string         // nothing with this prefix any more: a common prefix that was returned
	page  Page
	last  string // last key or common prefix returned
	// passed counts the entries that are no objects, or left out.
	passed int
	ends   string // if set, the page ends behind what has this prefix
	bytes  int    // of the keys and common prefixes returned
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
	if l.unlisted(path) {
		return nil
	}
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
	ino record.Ino
	typ uint32
	record.DirBits
}

func (e *listEntry) dir() bool { return e.typ == record.ModeDirectory }

// directory lists what lies below a directory whose keys begin with path.
func (l *lister) directory(ino record.Ino, path string, chunk int) error {
	base := record.DentryPrefix(ino)
	start, end := l.bounds(base, path)
	at := below{base, path}
	var buf []listEntry
	for first := chunk; ; {
		var err error
		if buf, err = l.read(buf[:0], at, start, end, chunk); err != nil || len(buf) == 0 {
			return err
		}
		more := len(buf) == chunk
		l.page.Objects = slices.Grow(l.page.Objects, min(len(buf), l.room()))
		start = append(append(slices.Clip(base), buf[len(buf)-1].key[len(path):]...), 0)
		chunk = min(2*chunk, MaxKeys+1)
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

// below is what the entries of a directory have in common: the beginnings of their
// stored keys and of their names.
type below struct {
	base []byte
	path string
}

// read appends up to limit entries to buf.
func (l *lister) read(buf []listEntry, at below, start, end []byte, limit int) ([]listEntry, error) {
	key := []byte(at.path)
	o := cluster.ScanOptions{Limit: limit, PairBytes: record.DentryPairBytes}
	err := l.j.R.Scan(start, end, o, func(k, v []byte) error {
		ino, typ, bits, ok := record.DecodeDentryValue(v)
		if !ok {
			return fmt.Errorf("%w: dentry %q", fserr.ErrCorrupt, k)
		}
		key = append(key[:len(at.path)], k[len(at.base):]...)
		buf = append(buf, listEntry{
			key: string(key),
			ino: ino,
			typ: typ, DirBits: bits,
		})
		return nil
	})
	return buf, err
}

// entry lists one entry of a directory, and of a directory what is below.
func (l *lister) entry(e *listEntry) error {
	if l.ends != "" && !strings.HasPrefix(e.key, l.ends) {
		return l.end(l.ends)
	}
	if l.unlisted(e.key) {
		return l.pass(e.key) // a directory with all that is below
	}
	if !e.dir() {
		return l.leaf(e)
	}
	at := keypath.Step{Ino: e.ino, DirBits: e.DirBits}
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
		return fmt.Errorf("%w: directory %d, %q, is below itself", fserr.ErrCorrupt, e.ino, e.key)
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
	case record.ModeRegular:
	case record.ModeSymlink:
		var err error
		if n, err = l.j.FollowLink(l.trail, e.ino); errors.Is(err, fserr.ErrNoSuchKey) || errors.Is(err, fserr.ErrAccess) {
			return l.pass(e.key)
		} else if err != nil {
			return err
		}
	default:
		return l.pass(e.key)
	}
	return l.tell(e.key, e.ino, n)
}

// pass counts an entry that is no object, or left out.
func (l *lister) pass(key string) error {
	if l.passed++; l.passed < maxPassed {
		return nil
	}
	if l.notText(key) {
		if l.last == "" {
			return fmt.Errorf("%w: %d names that are not UTF-8 one after another", fserr.ErrInvalid, maxPassed)
		}
		return l.full()
	}
	if l.commonPrefix(key) == key {
		// As StartAfter it stands for all keys that begin so, which were not returned.
		l.ends = key
		return nil
	}
	return l.end(key)
}

// end ends a page that goes on after next.
func (l *lister) end(next string) error {
	l.page.Truncated, l.page.Next = true, next
	return errPageFull
}

// ownKey lists the key of a directory itself, if it is explicit.
func (l *lister) ownKey(ino record.Ino, key string) error {
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
func (l *lister) tell(key string, ino record.Ino, n *record.Inode) error {
	if cp := l.commonPrefix(key); cp != "" {
		return l.tellPrefix(cp)
	}
	if l.room() == 0 || l.bytes >= MaxBytes {
		return l.full()
	}
	l.page.Objects = append(l.page.Objects, Object{Key: key, Ino: ino, Inode: n})
	l.bytes += len(key)
	l.last = key
	return nil
}

func (l *lister) tellPrefix(cp string) error {
	if l.room() == 0 || l.bytes >= MaxBytes {
		return l.full()
	}
	l.page.CommonPrefixes = append(l.page.CommonPrefixes, cp)
	l.bytes += len(cp)
	l.skip, l.last = cp, cp
	return nil
}

// unlisted reports whether a key, and what begins with it, is left out whatever it is.
func (l *lister) unlisted(key string) bool { return l.tooLong(key) || l.notText(key) }

func (l *lister) notText(key string) bool { return l.o.Text && !utf8.ValidString(key) }

// tooLong reports whether a key is longer than any call takes (see parseKey).
func (l *lister) tooLong(key string) bool {
	if l.whole {
		return len(keypath.BelowTop(key)) > keypath.MaxKeyBytes
	}
	return len(key) > keypath.MaxKeyBytes
}

// room is how many keys and common prefixes the page can still take.
func (l *lister) room() int {
	return l.o.MaxKeys - len(l.page.Objects) - len(l.page.CommonPrefixes)
}

func (l *lister) full() error { return l.end(l.last) }

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
