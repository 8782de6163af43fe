package holder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// held is a pipe in the place of /dev/fuse: its write end polls POLLERR once the
// read end is closed, as a connection does that the kernel ended.
func held(t *testing.T) (device, end int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return p[1], p[0]
}

func memory(t *testing.T, text string) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err == nil {
		_, err = unix.Pwrite(fd, []byte(text), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// serving runs a holder and returns its socket and what Serve returns.
func serving(t *testing.T) (path string, ended chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "holder.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("socket: %v, %v", info.Mode(), err)
	}
	ended = make(chan error, 1)
	go func() { ended <- Serve(l, path) }()
	return path, ended
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, c *Client, i Item) {
	t.Helper()
	if err := c.Put(i); err != nil {
		t.Fatal(err)
	}
	closeAll([]int{i.Device, i.Memory})
}

func awaitEnd(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the holder does not end")
	}
}

func TestHandOver(t *testing.T) {
	path, ended := serving(t)
	first := dial(t, path)
	device, end := held(t)
	put(t, first, Item{Name: "/a", Meta: []byte(`{"x":1}`), Device: device, Memory: memory(t, "kept")})

	// The next one waits until the first is gone.
	second := dial(t, path)
	got := make(chan []Item, 1)
	go func() {
		list, err := second.List()
		if err != nil {
			t.Error(err)
		}
		got <- list
	}()
	select {
	case <-got:
		t.Fatal("handed over while the server before was connected")
	case <-time.After(50 * time.Millisecond):
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	list := <-got
	if len(list) != 1 || list[0].Name != "/a" || string(list[0].Meta) != `{"x":1}` {
		t.Fatalf("got %+v", list)
	}
	b := make([]byte, 4)
	if _, err := unix.Pread(list[0].Memory, b, 0); err != nil || string(b) != "kept" {
		t.Fatalf("memory: %q, %v", b, err)
	}
	if _, err := unix.Write(list[0].Device, []byte("x")); err != nil {
		t.Fatal(err)
	}
	list[0].Close()
	if err := second.Drop("/a"); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ended)
	if _, err := Dial(path); !errors.Is(err, ErrNone) {
		t.Fatalf("behind the end: %v", err)
	}
	closeAll([]int{end})
}

// What the kernel ended is let go of, and then the holder ends.
func TestDeadConnection(t *testing.T) {
	path, ended := serving(t)
	c := dial(t, path)
	device, end := held(t)
	put(t, c, Item{Name: "/a", Device: device, Memory: memory(t, "")})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("ended with a connection that lives")
	case <-time.After(50 * time.Millisecond):
	}
	closeAll([]int{end})
	awaitEnd(t, ended)
}

func TestAbandoned(t *testing.T) {
	path, ended := serving(t)
	c := dial(t, path)
	device, end := held(t)
	put(t, c, Item{Name: "/a", Abandon: 30 * time.Millisecond, Device: device, Memory: memory(t, "")})
	time.Sleep(60 * time.Millisecond) // with a server, no time is too long
	if list, err := c.List(); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ended)
	closeAll([]int{end})
}

// A process or machine that is short of descriptors for a while loses nothing that is held.
func TestShortage(t *testing.T) {
	path, ended := serving(t)
	first := dial(t, path)
	device, end := held(t)
	put(t, first, Item{Name: "/a", Device: device, Memory: memory(t, "")})
	second := dial(t, path) // in the queue
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 3, Max: limit.Max} // these are in use; poll takes as many
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	closed := first.Close()
	select {
	case err := <-ended:
		t.Errorf("the holder ends: %v", err)
	case <-time.After(2 * shortagePause):
	}
	if err := errors.Join(closed, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil || t.Failed() {
		t.Fatal(err)
	}
	list, err := second.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	list[0].Close()
	if err := errors.Join(second.Drop("/a"), second.Close()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ended)
	closeAll([]int{end})
}

func TestLongPath(t *testing.T) {
	dir := t.TempDir()
	for len(dir) < 200 {
		dir = filepath.Join(dir, "a-folder-with-a-long-name")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "holder.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := dial(t, path).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holder.sock")
	if _, err := Dial(path); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	if _, err := Dial(path); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	if l, err = Listen(path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close()); err != nil {
		t.Fatal(err)
	}
}

// A holder whose server was killed before it connected ends.
func TestNeverUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holder.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(l, path, 20*time.Millisecond) }()
	awaitEnd(t, ended)
}

// A client learns that the holder is gone.
func TestHolderGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holder.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, path)
	ended, err := c.Ended()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("gone with its socket open")
	case <-time.After(20 * time.Millisecond):
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody notices")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
