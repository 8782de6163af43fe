package s3

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// maxRenameTokens bounds the renames that are remembered by what clients call them,
// oldest first: far above those whose answer is on its way.
const maxRenameTokens = 4096

// renameTokens are renames that were made: one that is sent again, since its answer
// was lost, is answered as at first. The zero value is ready.
type renameTokens struct {
	mu    sync.Mutex
	made  map[renameDigest]renameDigest // by who asked under which token, what for
	order []renameDigest                // a ring, once full
	next  int
}

type renameDigest [16]byte

// find returns what was asked for under a token.
func (t *renameTokens) find(token renameDigest) (what renameDigest, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what, ok = t.made[token]
	return what, ok
}

// done remembers a rename.
func (t *renameTokens) done(token, what renameDigest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made == nil {
		t.made = make(map[renameDigest]renameDigest)
	}
	if _, ok := t.made[token]; ok {
		return
	}
	if len(t.order) < maxRenameTokens {
		t.order = append(t.order, token)
	} else {
		delete(t.made, t.order[t.next])
		t.order[t.next] = token
		t.next = (t.next + 1) % maxRenameTokens
	}
	t.made[token] = what
}

func digestOf(words ...string) renameDigest {
	h := sha256.New()
	for _, w := range words {
		fmt.Fprintf(h, "%d %s", len(w), w)
	}
	return renameDigest(h.Sum(nil)[:16])
}
