package vfs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
)

const (
	// firstPage of a directory is what one small reply holds; each further
	// page doubles up to maxPage, which bounds the memory of a listing at
	// about a megabyte and the time of one snapshot at a few milliseconds.
	firstPage = 128
	maxPage   = 2048
	// someEntries is what most directories do not hold; from there on there
	// is room for a page.
	someEntries = 16
)

// ReadDirOptions of ReadDir.
type ReadDirOptions struct {
	After string // position (DirEntry.Pos) that the entries lie behind; "": from the start
	Attrs bool   // fill DirEntry.Attr, if the caller may search the directory
	// Few, if not 0, is how many entries the caller will hardly take more than: so
	// many are read, and more only if it does.
	Few int
}

// ReadDir calls fn for the entries of dir, without "." and "..", until fn returns an
// error (cluster.ErrStop: without one). fn may call back into the FS. Entries that
// exist throughout are shown exactly once, whatever comes and goes concurrently.
func (fs *FS) ReadDir(ctx context.Context, cred *Cred, dir Ino, o ReadDirOptions, fn func(DirEntry) error) error {
	few := max(1, cmp.Or(o.Few, firstPage))
	for limit := min(few, maxPage); ; {
		page, search, err := fs.readPage(ctx, cred, dir, o, limit)
		if err != nil {
			return err
		}
		for i := range page {
			if err := fn(page[i]); err != nil {
				if errors.Is(err, cluster.ErrStop) {
					return nil
				}
				return err
			}
		}
		if len(page) < limit {
			return nil
		}
		if few -= limit; few > 0 {
			limit = min(few, maxPage)
		} else {
			limit = min(2*limit, maxPage)
		}
		o.After = page[len(page)-1].Pos
		o.Attrs = o.Attrs && search
		cred = cred.Checked() // checked with the first page
	}
}

// readPage reads up to limit entries from one snapshot; search reports whether cred may have
// their attributes, as for Lookup.
func (fs *FS) readPage(ctx context.Context, cred *Cred, dir Ino, o ReadDirOptions, limit int) (page []DirEntry, search bool, err error) {
	mark := fs.session.Open.Mark()
	err = fs.view(ctx, func(r cluster.Reader) error {
		page, search = nil, false
		d, err := keypath.GetDir(r, dir)
		if err != nil {
			return err
		}
		if err := perm.Check(r, cred, d, AccessRead); err != nil {
			return err
		}
		err = perm.Check(r, cred, d, AccessExec)
		if search = err == nil; !search && !errors.Is(err, ErrAccess) {
			return err
		}
		entries, err := scanEntries(r, dir, o.After, limit)
		if err != nil {
			return err
		}
		page = make([]DirEntry, len(entries))
		shadowed, err := findShadowed(r, d, entries)
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			page[i] = DirEntry{Name: naming.Shown(e.Name, e.Dir, shadowed[i]), Ino: e.Ino, Mode: e.Mode, Pos: e.S3Name()}
		}
		if o.Attrs && search && len(page) > 0 {
			return fs.fillAttrs(r, page)
		}
		return nil
	})
	for i := range page {
		if a := page[i].Attr; err == nil && a != nil && fs.session.Open.LeftSince(mark, a.Ino) {
			// Flushed and closed concurrently.
			if *a, err = fs.attrFor(ctx, a.Ino); errors.Is(err, ErrStale) {
				page[i].Attr, err = nil, nil
			}
		}
	}
	return page, search, err
}

// scanEntries reads up to limit dentries of dir behind position after.
func scanEntries(r cluster.Reader, dir Ino, after string, limit int) ([]record.Dentry, error) {
	prefix := record.DentryPrefix(dir)
	start := prefix
	if after != "" {
		start = append(append(record.DentryPrefix(dir), after...), 0)
	}
	var list []record.Dentry
	o := cluster.ScanOptions{Limit: limit, PairBytes: record.DentryPairBytes}
	err := r.Scan(start, cluster.PrefixEnd(prefix), o, func(k, v []byte) error {
		switch len(list) {
		case someEntries:
			list = slices.Grow(list, min(limit, firstPage)-someEntries)
		case firstPage:
			list = slices.Grow(list, limit-firstPage)
		}
		e, err := record.DecodeDentry(k[len(prefix):], v)
		list = append(list, e)
		return err
	})
	return list, err
}

// findShadowed returns which entries are files beside a directory of the same
// name. Only directories that ever held such a pair pay for it.
func findShadowed(r cluster.Reader, d *record.Inode, entries []record.Dentry) ([]bool, error) {
	shadowed := make([]bool, len(entries))
	if !d.Has(record.FlagShadows) {
		return shadowed, nil
	}
	var keys [][]byte
	var places []int
	for i := range entries {
		if !entries[i].Dir {
			keys = append(keys, record.DirEntryKey(d.Ino, entries[i].Name))
			places = append(places, i)
		}
	}
	vs, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	for k, i := range places {
		shadowed[i] = vs[k] != nil
	}
	return shadowed, nil
}

// fillAttrs reads the attributes of all entries of a page in one round trip.
func (fs *FS) fillAttrs(r cluster.Reader, page []DirEntry) error {
	order := make([]int, len(page))
	var dirs []int
	for i := range page {
		order[i] = i
		if page[i].Mode == ModeDirectory {
			dirs = append(dirs, i)
		}
	}
	byIno := func(a, b int) int { return compareIno(page[a].Ino, page[b].Ino) }
	slices.SortFunc(order, byIno)
	slices.SortFunc(dirs, byIno)
	keys := make([][]byte, 0, len(order)+len(dirs))
	text := make([]byte, 0, cap(keys)*record.Key1Bytes)
	for _, i := range order {
		keys, text = record.AppendKey1(keys, text, record.TabInode, page[i].Ino)
	}
	for _, i := range dirs {
		keys, text = record.AppendKey1(keys, text, record.TabDirTime, page[i].Ino)
	}
	vs, err := r.GetMany(keys)
	if err != nil {
		return err
	}
	times := make(map[Ino][]byte, len(dirs))
	for k, i := range dirs {
		times[page[i].Ino] = vs[len(order)+k]
	}
	list := make([]Attr, len(order))
	for k, i := range order {
		if vs[k] == nil {
			continue
		}
		n := record.Inode{Ino: page[i].Ino}
		if err := n.Decode(vs[k]); err != nil {
			return err
		}
		if list[k], err = fs.attrWith(&n, times[n.Ino]); err != nil {
			return err
		}
		page[i].Attr = &list[k]
	}
	return nil
}

func compareIno(a, b Ino) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
