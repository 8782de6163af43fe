package integration

import (
	"fmt"
	"strings"
	"testing"
)

// TestCoherence changes one file through each door in turn: every other door
// shows the change at once, whatever it had cached.
func TestCoherence(t *testing.T) {
	s := newServer(t, options{})
	s.makeBucket("coherence")
	all := s.doors(t).all()
	const rounds = 20
	for round := range rounds {
		for _, w := range all {
			// Lengths shrink and grow, so that a stale size shows.
			body := fmt.Sprintf("%s wrote this in round %d %s", w.Name(), round, strings.Repeat("x", (round*7919)%50000))
			if err := w.Write("coherence/dir/file", body); err != nil {
				t.Fatalf("%s: write: %v", w.Name(), err)
			}
			for _, r := range all {
				got, err := r.Read("coherence/dir/file")
				if err != nil || got != body {
					t.Fatalf("round %d: %s wrote %d bytes, %s reads %d bytes (%.40q…), error %v",
						round, w.Name(), len(body), r.Name(), len(got), got, err)
				}
			}
		}
	}
	checkClean(t, s)
}
