package holder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stopped is the socket of a holder that does not answer.
func stopped(t *testing.T) (socket *os.File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "socket")
	socket, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket, path
}

// A holder that is stopped holds up nobody, more than once.
func TestHolderThatDoesNotAnswer(t *testing.T) {
	_, path := stopped(t)
	c := dial(t, path)
	defer c.Close()
	for _, limit := range []time.Duration{2 * answerWait, answerWait / 2} {
		begun := time.Now()
		if err := c.Drop("m"); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrHung) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took > limit {
			t.Errorf("the answer is waited for %v", took)
		}
	}
}

// Who gives up a holder that is stopped, each time anew, does not wait for its queue, and finds
// what it asked for first when the holder goes on.
func TestHolderGoesOn(t *testing.T) {
	socket, path := stopped(t)
	first := dial(t, path)
	device, end := held(t)
	defer closeAll([]int{end})
	item := Item{Name: "/a", Device: device, Memory: memory(t, "kept")}
	defer item.Close()
	if err := first.Put(item); !errors.Is(err, ErrHung) {
		t.Errorf("put: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // more than the queue takes
		c, err := Start(path)
		if !errors.Is(err, ErrHung) {
			t.Fatalf("%v, %v", c, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(socket, path) }()
	c, err := Start(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.List()
	if err != nil || len(list) != 1 || list[0].Name != "/a" {
		t.Fatalf("%v, %v", list, err)
	}
	list[0].Close()
	if err := errors.Join(c.Drop("/a"), c.Close()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ended)
}
