package holder

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// A holder that is stopped holds up nobody, more than once.
func TestHolderThatDoesNotAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, limit := range []time.Duration{2 * answerWait, answerWait / 2} {
		begun := time.Now()
		if err := c.Drop("m"); !errors.Is(err, ErrRefused) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took > limit {
			t.Errorf("the answer is waited for %v", took)
		}
	}
}
