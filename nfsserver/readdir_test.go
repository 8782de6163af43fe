package nfsserver

import (
	"fmt"
	"slices"
	"testing"
)

func fillDir(c *client, dir []byte, n int) {
	c.t.Helper()
	for i := range n {
		c.must("create", first(c.create(dir, fmt.Sprintf("file%05d", i), createGuarded, set{})))
	}
}

func names(list []dirent) (out []string) {
	for _, e := range list {
		out = append(out, e.name)
	}
	slices.Sort(out)
	return out
}

func TestReaddir(t *testing.T) {
	s := newSite(t)
	c := s.mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	st, list, eof := c.readdir(d, 0, 4096, true)
	c.must("an empty directory", st)
	if len(list) != 2 || list[0].name != "." || list[1].name != ".." || !eof {
		t.Errorf("%v, %v", list, eof)
	}
	_, root, _ := c.lookup(c.root, ".")
	if string(list[1].fh) != string(root) || string(list[0].fh) != string(d) {
		t.Error("handles of . and ..")
	}
	const n = 1000
	fillDir(c, d, n)
	for _, plus := range []bool{false, true} {
		for _, bytes := range []uint32{1, 512, 4096, 1 << 20} {
			got := names(c.list(d, bytes, plus))
			if len(got) != n || len(slices.Compact(got)) != n {
				t.Errorf("replies of %d bytes: %d entries, %d different", bytes, len(got), len(slices.Compact(got)))
			}
		}
	}
	for _, e := range c.list(d, 1<<20, true)[:20] {
		st, fh, a := c.lookup(d, e.name)
		if st != OK || string(fh) != string(e.fh) || *a != *e.attr || a.fileid != e.fileid {
			t.Errorf("%s: READDIRPLUS and LOOKUP differ", e.name)
		}
	}
	_, f, _ := c.lookup(d, "file00000")
	st, _, _ = c.readdir(f, 0, 4096, false)
	c.want("of a file", st, ErrNotDir)
}

// TestReaddirplusWithoutSearch: who may read a directory and not search it is given names,
// and neither attributes nor handles of what LOOKUP refuses. "." and ".." are as ever.
func TestReaddirplusWithoutSearch(t *testing.T) {
	s := newSite(t)
	root, owner, bob := s.mount("/", 0), s.mount("/", 10), s.mount("/", 11)
	_, d, _ := root.mkdir(root.root, "d", set{mode: ptr(uint32(0o744)), uid: ptr(uint32(10))})
	const n = 300
	fillDir(root, d, n)
	st, _, _ := bob.lookup(d, "file00000")
	bob.want("lookup", st, ErrAcces)
	for _, bytes := range []uint32{2048, 1 << 20} {
		for _, c := range []*client{root, owner, bob} {
			list := c.list(d, bytes, true)
			if len(list) != n {
				t.Errorf("%d names, want %d", len(list), n)
			}
			for _, e := range list {
				if shown := c != bob; (e.attr != nil) != shown || (e.fh != nil) != shown {
					t.Fatalf("%s: attributes %v, handle %x; wanted them: %v", e.name, e.attr, e.fh, shown)
				}
			}
		}
	}
	_, list, _ := bob.readdir(d, 0, 4096, true)
	for _, e := range list[:2] {
		if !isDots(e.name) || e.attr == nil || e.fh == nil {
			t.Errorf("%s: attributes %v, handle %x", e.name, e.attr, e.fh)
		}
	}
}

// TestReaddirOfTwo lists a directory for one client, and begins for another after the entry
// from which the first goes on was removed: it sees no entry twice.
func TestReaddirOfTwo(t *testing.T) {
	s := newSite(t)
	c, other := s.mount("/", 0), s.mount("/", 0)
	_, d, _ := c.mkdir(c.root, "d", set{})
	const n = 50
	fillDir(c, d, n)
	seen := map[string]int{}
	for cookie, eof := uint64(0), false; !eof; {
		var st Status
		var list []dirent
		st, list, eof = c.readdir(d, cookie, 512, false)
		c.must("readdir", st)
		for _, e := range list {
			seen[e.name]++
			cookie = e.cookie
		}
		if last := list[len(list)-1].name; !eof {
			c.must("remove", c.unlink(procRemove, d, last))
			other.list(d, 512, false)
		}
	}
	for name, times := range seen {
		if times > 1 {
			t.Errorf("%s was listed %d times", name, times)
		}
	}
	if len(seen) != n+2 {
		t.Errorf("%d names, want %d", len(seen), n+2)
	}
}

// TestCookiesOfAChangingDirectory: clients that begin to list a directory again and again, of
// which entries go, push nothing out of what is remembered of others.
func TestCookiesOfAChangingDirectory(t *testing.T) {
	c := newCookieCache()
	put := func(start uint64, cookies ...uint64) {
		b := &cookieBlock{dir: 1, start: start}
		for _, k := range cookies {
			b.add(k, "position")
		}
		c.put(b)
	}
	blocks := func(what string, want int) {
		t.Helper()
		if got := len(c.dirs[1]); got != want || c.lru.Len() != want {
			t.Errorf("%s: %d blocks, want %d", what, got, want)
		}
	}
	put(0, 1, 2, 3)
	put(0, 1, 2, 3, 4)
	blocks("one that holds all of another", 1)
	put(0, 1, 2)
	blocks("one that ends before", 2)
	put(0, 1, 2, 3, 4)
	blocks("one that holds both", 1)
	for i := range uint64(10 * maxSameStart) {
		put(0, 100+i)
		put(7, 200, 300)
	}
	blocks("many", maxSameStart+1)
	if _, ok := c.get(1, 100+10*maxSameStart-1); !ok {
		t.Error("the newest is gone")
	}
}

// TestReaddirWhileEntriesGo removes what was listed, and more, between the
// replies, with and without remembered cookies.
func TestReaddirWhileEntriesGo(t *testing.T) {
	for _, forget := range []bool{false, true} {
		s := newSite(t)
		c := s.mount("/", 0)
		_, d, _ := c.mkdir(c.root, "d", set{})
		const n = 600
		fillDir(c, d, n)
		seen := map[string]int{}
		removed := map[string]bool{}
		cookie := uint64(0)
		for i := 0; ; i++ {
			st, list, eof := c.readdir(d, cookie, 1024, false)
			c.must("readdir", st)
			for _, e := range list {
				seen[e.name]++
				cookie = e.cookie
			}
			// The last one listed, whose cookie is continued from, included.
			for _, e := range list {
				if !isDots(e.name) && !removed[e.name] {
					c.must("remove", c.unlink(procRemove, d, e.name))
					removed[e.name] = true
				}
			}
			c.must("create", first(c.create(d, fmt.Sprintf("new%05d", i), createGuarded, set{})))
			if forget {
				s.srv.cookies = newCookieCache()
			}
			if eof || i > 10*n {
				break
			}
		}
		for i := range n {
			name := fmt.Sprintf("file%05d", i)
			if seen[name] == 0 || !forget && seen[name] > 1 {
				t.Fatalf("forget %v: %s was listed %d times", forget, name, seen[name])
			}
		}
	}
}
