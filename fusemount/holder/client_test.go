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

// A server that starts waits for a holder that is stopped, and for a server before that is not
// gone, no longer than it says, and the next one has what is held.
func TestListIsBounded(t *testing.T) {
	socket, path := stopped(t)
	list := func(c *Client, wait time.Duration) ([]Item, error) {
		type answer struct {
			list []Item
			err  error
		}
		answered := make(chan answer, 1)
		go func() {
			list, err := c.list(wait)
			answered <- answer{list, err}
		}()
		select {
		case a := <-answered:
			return a.list, a.err
		case <-time.After(answerWait):
			t.Fatal("it waits without an end")
			return nil, nil
		}
	}
	frozen := dial(t, path)
	for range 2 {
		if _, err := list(frozen, answerWait/100); !errors.Is(err, ErrHung) {
			t.Errorf("a holder that is stopped: %v", err)
		}
	}
	if err := frozen.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(socket, path) }()
	before, next := dial(t, path), dial(t, path)
	device, end := held(t)
	defer closeAll([]int{end})
	put(t, before, Item{Name: "/a", Device: device, Memory: memory(t, "kept")})
	if _, err := list(next, answerWait/100); !errors.Is(err, ErrHung) {
		t.Errorf("a server before that is not gone: %v", err)
	}
	if err := errors.Join(next.Close(), before.Close()); err != nil {
		t.Fatal(err)
	}
	last := dial(t, path)
	items, err := list(last, answerWait)
	if err != nil || len(items) != 1 {
		t.Fatalf("%v, %v", items, err)
	}
	items[0].Close()
	if err := errors.Join(last.Drop("/a"), last.Close()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ended)
}
