package nfsserver

import (
	"container/list"
	"sync"

	"ogw/vfs"
)

// maxCookieBytes bounds what is remembered of listings: enough for some
// directories of a hundred thousand entries each.
const maxCookieBytes = 32 << 20

// maxSameStart bounds the blocks of one directory that begin at the same cookie: a
// directory that changes and is listed again and again leaves no more of its earlier
// states, which would push out what others go on from.
const maxSameStart = 16

// cookieCache remembers which position in a directory a cookie stands for,
// in blocks of one reply each. What it forgot is found by scanning, so it
// decides speed only.
type cookieCache struct {
	mu    sync.Mutex
	dirs  map[vfs.Ino][]*cookieBlock
	lru   *list.List // of *cookieBlock, used last at the front
	bytes int
}

// cookieBlock holds the entries of one reply.
type cookieBlock struct {
	dir     vfs.Ino
	start   uint64 // cookie that the client gave
	cookies []uint64
	ends    []uint32 // where each position ends in text
	text    []byte   // the positions, one behind the other
	elem    *list.Element
}

// cookieBlockBytes is the cost of an empty block.
const cookieBlockBytes = 128

func (b *cookieBlock) add(cookie uint64, pos string) {
	b.cookies = append(b.cookies, cookie)
	b.text = append(b.text, pos...)
	b.ends = append(b.ends, uint32(len(b.text)))
}

func (b *cookieBlock) size() int {
	return cookieBlockBytes + 8*cap(b.cookies) + 4*cap(b.ends) + cap(b.text)
}

func (b *cookieBlock) find(cookie uint64) (string, bool) {
	// Clients nearly always continue behind the last entry.
	for i := len(b.cookies) - 1; i >= 0; i-- {
		if b.cookies[i] == cookie {
			begin := uint32(0)
			if i > 0 {
				begin = b.ends[i-1]
			}
			return string(b.text[begin:b.ends[i]]), true
		}
	}
	return "", false
}

func newCookieCache() *cookieCache {
	return &cookieCache{dirs: make(map[vfs.Ino][]*cookieBlock), lru: list.New()}
}

// put remembers a block, in place of older ones with the same start from which nobody needs
// to go on: it has their last cookie, too. Where that entry was removed, only the older
// block knows where it was.
func (c *cookieCache) put(b *cookieBlock) {
	if len(b.cookies) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var same []*cookieBlock
	for _, old := range c.dirs[b.dir] {
		if old.start == b.start {
			same = append(same, old)
		}
	}
	for i, old := range same {
		_, has := b.find(old.cookies[len(old.cookies)-1])
		if has || i == 0 && len(same) == maxSameStart {
			c.remove(old)
		}
	}
	c.dirs[b.dir] = append(c.dirs[b.dir], b)
	b.elem = c.lru.PushFront(b)
	c.bytes += b.size()
	for c.bytes > maxCookieBytes && c.lru.Len() > 1 {
		c.remove(c.lru.Back().Value.(*cookieBlock))
	}
}

func (c *cookieCache) remove(b *cookieBlock) {
	c.lru.Remove(b.elem)
	c.bytes -= b.size()
	blocks := c.dirs[b.dir]
	for i, o := range blocks {
		if o == b {
			blocks = append(blocks[:i], blocks[i+1:]...)
			break
		}
	}
	if len(blocks) == 0 {
		delete(c.dirs, b.dir)
	} else {
		c.dirs[b.dir] = blocks
	}
}

// get returns the position of a cookie.
func (c *cookieCache) get(dir vfs.Ino, cookie uint64) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	blocks := c.dirs[dir]
	for i := len(blocks) - 1; i >= 0; i-- {
		if pos, ok := blocks[i].find(cookie); ok {
			c.lru.MoveToFront(blocks[i].elem)
			return pos, true
		}
	}
	return "", false
}
