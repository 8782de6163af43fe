package engines

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fuseHelper is set for a process that makes operations on a mount: one that a gateway keeps
// waiting for an answer cannot be given up, and this process starts gateways, which it
// could not with files of a mount open.
const fuseHelper = "OGW_TEST_FUSE_HELPER"

// fuseCall is an operation for a fuseHelper, fuseReply what came of it.
type fuseCall struct {
	Kind, Path, Temp, Value string
}

type fuseReply struct {
	Value   string
	Refused bool
	Nothing bool // nothing was learned
	Err     string
}

// serveFiles makes the operations that come on stdin.
func serveFiles() error {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var c fuseCall
		err := in.Decode(&c)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = out.Encode(c.do())
		}
		if err != nil {
			return err
		}
	}
}

func (c *fuseCall) do() (r fuseReply) {
	var err error
	switch c.Kind {
	case "fuse read":
		r.Value, err = readFile(c.Path, os.O_RDWR)
	case "fuse cached read":
		r.Value, err = readFile(c.Path, os.O_RDONLY)
	case "fuse write":
		r.Nothing, err = c.write(os.O_WRONLY)
	case "fuse append":
		r.Nothing, err = c.write(os.O_WRONLY | os.O_APPEND)
	case "fuse put":
		r.Nothing, err = c.put(0)
	case "fuse create":
		r.Nothing, err = c.put(unix.RENAME_NOREPLACE)
		if errors.Is(err, fs.ErrExist) {
			r.Refused, err = true, nil
		}
	case "fuse remove":
		if err = syscall.Unlink(c.Path); errors.Is(err, fs.ErrNotExist) {
			r.Refused, err = true, nil
		}
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// readFile returns what a file holds, "" if there is none. What is open for writing, too, is
// read past the page cache, in one request: pages and size are not of one moment while
// others replace the file (docs/semantics.md).
func readFile(name string, flags int) (string, error) {
	f, err := os.OpenFile(name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, maxRegister)
	n, err := unix.Pread(int(f.Fd()), b, 0)
	return string(b[:max(n, 0)]), err
}

// write writes over the beginning of a file that is there, or appends to it. Whether the
// name is still that of the file, nobody knows who does not find it after the write.
func (c *fuseCall) write(flags int) (nothing bool, err error) {
	f, err := os.OpenFile(c.Path, flags, 0)
	if err != nil {
		return true, err
	}
	before, err := f.Stat()
	if err == nil {
		_, err = f.WriteString(c.Value)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	after, err := os.Stat(c.Path)
	if err == nil && !os.SameFile(before, after) {
		err = fs.ErrNotExist
	}
	return false, err
}

// put writes a file under a name of its own, and gives it the name that counts.
func (c *fuseCall) put(flags uint) (nothing bool, err error) {
	f, err := os.OpenFile(c.Temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return true, err
	}
	_, err = f.WriteString(c.Value)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(c.Temp)
		return true, err
	}
	if err = unix.Renameat2(unix.AT_FDCWD, c.Temp, unix.AT_FDCWD, c.Path, flags); err != nil {
		_ = os.Remove(c.Temp)
	}
	return false, err
}

// fuseWays are a client's processes, one for each mount.
type fuseWays struct {
	id, count int
	helpers   map[*node]*helper
}

// helper is a process that makes operations on a mount.
type helper struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	calls   *gob.Encoder
	replies chan fuseReply
	owes    bool // an answer to what was given up
}

// newFuseWays starts the processes of client id, none where there are no mounts.
func newFuseWays(n *nemesis, id int) (*fuseWays, error) {
	w := &fuseWays{id: id, helpers: map[*node]*helper{}}
	for _, x := range n.nodes {
		if x.mount == "" {
			continue
		}
		h, err := startHelper()
		if err != nil {
			w.close()
			return nil, err
		}
		w.helpers[x] = h
	}
	return w, nil
}

func startHelper() (*helper, error) {
	h := &helper{cmd: exec.Command(os.Args[0]), replies: make(chan fuseReply, 1)}
	h.cmd.Env = append(os.Environ(), fuseHelper+"=1")
	h.cmd.Stderr = os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		h.in, err = h.cmd.StdinPipe()
	}
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	h.calls = gob.NewEncoder(h.in)
	go func() {
		defer close(h.replies)
		for in := gob.NewDecoder(out); ; {
			var r fuseReply
			if in.Decode(&r) != nil {
				return
			}
			h.replies <- r
		}
	}()
	return h, nil
}

// close ends the processes, whatever they wait for.
func (w *fuseWays) close() {
	for _, h := range w.helpers {
		h.in.Close()
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	}
}

// do makes an operation on a mount. After an error, what was begun may happen; what was not
// is errSaysNothing.
func (w *fuseWays) do(op *register) (out seen, err error) {
	h := w.helpers[op.at]
	if h == nil || !h.free() {
		return out, errSaysNothing
	}
	w.count++
	bucket := filepath.Join(op.at.mount, "bkt")
	err = h.calls.Encode(fuseCall{Kind: op.kind, Value: op.value, Path: filepath.Join(bucket, op.key),
		Temp: filepath.Join(bucket, fmt.Sprintf("temp-%d-%d", w.id, w.count))})
	if err != nil {
		return out, err
	}
	select {
	case r, ok := <-h.replies:
		switch {
		case !ok:
			return out, errors.New("the process on the mount has ended")
		case r.Nothing && r.Err != "":
			return out, fmt.Errorf("%w: %s", errSaysNothing, r.Err)
		case r.Err != "":
			return out, errors.New(r.Err)
		}
		return seen{value: r.Value, refused: r.Refused}, nil
	case <-time.After(opTimeout):
		h.owes = true
		return out, errors.New("no answer")
	}
}

// free reports whether the process waits for an operation.
func (h *helper) free() bool {
	if h.owes {
		select {
		case <-h.replies:
			h.owes = false
		default:
		}
	}
	return !h.owes
}
