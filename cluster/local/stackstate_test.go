package local

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"

	"ogw/cluster"
	ns "ogw/vfs"
)

// treeState is all that one client's bucket holds, as any door sees it.
type treeState map[string]treeEntry

// treeEntry is a file, directory, link or upload. content is apart from the
// rest because it is open while the file has unsynced writes.
type treeEntry struct {
	ino     ns.Ino
	meta    string
	content string
	bytes   []byte // of files, when asked for
}

var hashSeed = maphash.MakeSeed()

// contentCache spares the reading of what did not change since the last look.
type contentCache map[[3]uint64]string

// lookAt reads a bucket. With a cache, as a client looks: contents come from
// there, and files with unsynced writes have none. Without one, as after a
// cut: everything is read, and the bytes of open files are kept.
func lookAt(fs *ns.FS, bucket string, dir ns.Ino, open map[ns.Ino][][]byte, cache contentCache) (treeState, error) {
	s := make(treeState)
	look := looker{fs: fs, bucket: bucket, open: open, cache: cache, state: s}
	if err := look.dir(dir, ""); err != nil {
		return nil, err
	}
	page, err := fs.ListUploads(relaxed, bucket, ns.ListUploadsOptions{MaxUploads: 1000})
	if err != nil {
		return nil, fmt.Errorf("list uploads: %w", err)
	}
	for _, u := range page.Uploads {
		parts, _, err := fs.ListParts(relaxed, ns.ObjectName{Bucket: bucket, Key: u.Key}.Upload(u.ID), 0, 1000)
		if err != nil {
			return nil, fmt.Errorf("parts of %s: %w", u.ID, err)
		}
		var text strings.Builder
		for _, p := range parts {
			fmt.Fprintf(&text, "%d:%d:%s ", p.Number, p.Size, p.ETag)
		}
		s[stackUploads+u.Key+" "+u.ID] = treeEntry{meta: text.String()}
	}
	return s, nil
}

var relaxed = cluster.Relaxed(ctx)

// afterFile is what a check writes itself.
const afterFile = "after-the-cut"

type looker struct {
	fs     *ns.FS
	bucket string
	open   map[ns.Ino][][]byte
	cache  contentCache
	state  treeState
}

func (l *looker) dir(dir ns.Ino, path string) error {
	var list []ns.DirEntry
	err := l.fs.ReadDir(relaxed, ns.Root, dir, ns.ReadDirOptions{Attrs: true}, func(e ns.DirEntry) error {
		list = append(list, e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %q: %w", path, err)
	}
	for _, e := range list {
		if path == "" && e.Name == afterFile {
			continue
		}
		if e.Attr == nil {
			return fmt.Errorf("%q lost its attributes", path+e.Name)
		}
		if err := l.entry(path+e.Name, e.Attr); err != nil {
			return fmt.Errorf("%q: %w", path+e.Name, err)
		}
	}
	return nil
}

func (l *looker) entry(path string, a *ns.Attr) error {
	t := treeEntry{ino: a.Ino, meta: fmt.Sprintf("%d %o links=%d", a.Ino, a.Mode, a.Nlink)}
	names, err := l.fs.ListXattr(relaxed, ns.Root, a.Ino)
	if err != nil {
		return fmt.Errorf("xattrs: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasPrefix(name, "user.t") {
			continue
		}
		value, err := l.fs.GetXattr(relaxed, ns.Root, a.Ino, name)
		if err != nil {
			return fmt.Errorf("xattr %s: %w", name, err)
		}
		t.meta += fmt.Sprintf(" %s=%s", name, value)
	}
	switch {
	case a.IsDir():
		l.state[path+"/"] = t
		return l.dir(a.Ino, path+"/")
	case a.IsSymlink():
		target, err := l.fs.Readlink(relaxed, a.Ino)
		if err != nil {
			return fmt.Errorf("readlink: %w", err)
		}
		t.content = "-> " + target
	default:
		if err := l.file(path, a, &t); err != nil {
			return err
		}
	}
	l.state[path] = t
	return nil
}

func (l *looker) file(path string, a *ns.Attr, t *treeEntry) error {
	versions := l.open[a.Ino]
	if l.cache != nil && len(versions) > 1 {
		return nil
	}
	id := [3]uint64{uint64(a.Ino), a.Version, uint64(a.Mtime.UnixNS())} // a truncation to the same size changes the time alone
	if text, ok := l.cache[id]; ok {
		t.content = text
		return nil
	}
	data, err := readFile(l.fs, a)
	if err != nil {
		return err
	}
	if l.cache == nil && versions != nil {
		t.bytes = data
		return nil
	}
	key := strings.ReplaceAll(path, ".ogw~f~", "") // as shown beside a directory of the same name
	info, err := l.fs.HeadObject(relaxed, ns.ObjectName{Bucket: l.bucket, Key: key}, ns.GetOptions{})
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	t.content = fmt.Sprintf("%d bytes %x etag %s mtime %d", len(data), maphash.Bytes(hashSeed, data), info.ETag, a.Mtime.UnixNS())
	if l.cache != nil {
		l.cache[id] = t.content
	}
	return nil
}

func readFile(fs *ns.FS, a *ns.Attr) ([]byte, error) {
	f, err := fs.Open(relaxed, ns.Root, a.Ino, ns.OpenRead)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer f.Close(relaxed)
	data := make([]byte, a.Size+1)
	n, err := f.ReadAt(relaxed, data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	if int64(n) != a.Size {
		return nil, fmt.Errorf("read %d bytes of %d", n, a.Size)
	}
	return data[:n], nil
}

// same compares what a restart found with a state; of open files any mixture
// of the versions since the last sync is right.
func (s treeState) same(got treeState, open map[ns.Ino][][]byte) error {
	for path := range got {
		if _, ok := s[path]; !ok {
			return fmt.Errorf("%q is there: %s", path, got[path].meta)
		}
	}
	for path, want := range s {
		g, ok := got[path]
		if !ok {
			return fmt.Errorf("%q is missing", path)
		}
		if err := want.same(&g, open); err != nil {
			return fmt.Errorf("%q %w", path, err)
		}
	}
	return nil
}

func (want *treeEntry) same(g *treeEntry, open map[ns.Ino][][]byte) error {
	if g.meta != want.meta {
		return fmt.Errorf("is %q, want %q", g.meta, want.meta)
	}
	if versions := open[want.ino]; versions != nil {
		return mixture(g.bytes, versions)
	}
	if g.content != want.content {
		return fmt.Errorf("holds %s, want %s", g.content, want.content)
	}
	return nil
}

// mixture reports whether every byte of data comes from one of the versions.
func mixture(data []byte, versions [][]byte) error {
	sized := false
	for _, v := range versions {
		if bytes.Equal(v, data) {
			return nil
		}
		sized = sized || len(v) == len(data)
	}
	if !sized {
		return fmt.Errorf("has %d bytes, which it never had", len(data))
	}
	for i, b := range data {
		if !slices.ContainsFunc(versions, func(v []byte) bool { return i < len(v) && v[i] == b || i >= len(v) && b == 0 }) {
			end := i // of what is wrong
			for end < len(data) && !slices.ContainsFunc(versions, func(v []byte) bool { return end < len(v) && v[end] == data[end] }) {
				end++
			}
			var have []string
			for _, v := range versions {
				have = append(have, fmt.Sprintf("%d bytes, %x there", len(v), v[min(i, len(v)):min(i+8, len(v))]))
			}
			return fmt.Errorf("holds wrong bytes from %d to %d of %d: %x; versions: %q", i, end, len(data), data[i:min(i+8, len(data))], have)
		}
	}
	return nil
}

// between reports whether every entry of got is as in one of two states: what
// an operation on several keys, each for itself, may leave.
func between(got, a, b treeState, open map[ns.Ino][][]byte) error {
	paths := maps.Clone(a)
	maps.Copy(paths, b)
	for path := range got {
		if _, ok := paths[path]; !ok {
			return fmt.Errorf("%q is there", path)
		}
	}
	for path := range paths {
		g, there := got[path]
		x, inA := a[path]
		y, inB := b[path]
		switch {
		case !there && (!inA || !inB):
		case there && (inA && x.same(&g, open) == nil || inB && y.same(&g, open) == nil):
		default:
			return fmt.Errorf("%q is neither as before nor as after", path)
		}
	}
	return nil
}

// except drops what an operation of unknown outcome may have changed: what it
// touched, all below, the folders above, and other links of the same files.
func (s treeState) except(touched []string, inodes map[ns.Ino]bool) treeState {
	rest := make(treeState)
	for path, e := range s {
		if !mayChange(path, touched) && !inodes[e.ino] {
			rest[path] = e
		}
	}
	return rest
}

func mayChange(path string, touched []string) bool {
	path = strings.ReplaceAll(path, ".ogw~f~", "") // shown so beside a directory of the same name
	return slices.ContainsFunc(touched, func(t string) bool {
		return path == t || t == stackUploads && strings.HasPrefix(path, t) ||
			strings.HasPrefix(path, t+"/") || strings.HasSuffix(path, "/") && strings.HasPrefix(t+"/", path)
	})
}

// inodesOf returns the inodes at touched paths.
func (s treeState) inodesOf(touched []string, inodes map[ns.Ino]bool) {
	for path, e := range s {
		if e.ino != 0 && mayChange(path, touched) {
			inodes[e.ino] = true
		}
	}
}
