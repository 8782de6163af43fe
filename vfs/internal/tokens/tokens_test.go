package tokens

import "testing"

// TestTokenRecord takes records that say nothing for what they are.
func TestTokenRecord(t *testing.T) {
	token := Token{ID: [16]byte{1, 2, 3}}
	const now = int64(1e18)
	good := token.record(7, now)
	if !token.doneIn(good, 8, now+ttl-1) {
		t.Error("a record of another process is not recognised")
	}
	for name, done := range map[string]bool{
		"own process":   token.doneIn(good, 7, now),
		"old":           token.doneIn(good, 8, now+ttl),
		"none":          token.doneIn(nil, 8, now),
		"cut":           token.doneIn(good[:len(good)-1], 8, now),
		"other version": token.doneIn(append([]byte{9}, good[1:]...), 8, now),
		"other request": (&Token{ID: [16]byte{1, 2, 4}}).doneIn(good, 8, now),
	} {
		if done {
			t.Errorf("%s: taken for done", name)
		}
	}
}
