package fusemount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// heldKV is a store whose next commit waits, and then fails.
type heldKV struct {
	cluster.KV
	armed atomic.Bool
	made  atomic.Int64  // commits
	held  chan struct{} // closed when a commit waits
	free  chan struct{}
}

var errHeld = errors.New("the disk failed once")

func (kv *heldKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if kv.armed.CompareAndSwap(true, false) {
		close(kv.held)
		<-kv.free
		return errHeld
	}
	err := kv.KV.Update(ctx, fn)
	if err == nil {
		kv.made.Add(1)
	}
	return err
}

// Two copies of a descriptor are closed at once, as when a program starts another
// between its open and its close: neither is answered before what was written is
// durable, and the failure of one does not count as the other's success.
func TestCopiesOfDescriptorClosed(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		for end := range endsOfCopy {
			t.Run(end, func(t *testing.T) {
				clu := mem.New(mem.Options{})
				kv := &heldKV{KV: clu.KV, held: make(chan struct{}), free: make(chan struct{})}
				clu.KV = kv
				fs, err := vfs.Open(bg, clu, vfs.Config{NoBackground: true})
				must(t, err)
				t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), clu.Close())) })
				top, _ := mountFS(t, fs, Options{Transport: over, Logger: slog.New(slog.DiscardHandler)})
				dir := filepath.Join(top, "bucket")
				must(t, os.Mkdir(dir, 0o755))
				p := startProgram(t, "TestCopiesProgram", copiesEnv+"="+end+" "+filepath.Join(dir, "f"))
				p.await(t, "written")

				before := kv.made.Load()
				kv.armed.Store(true)
				p.step(t)
				<-kv.held
				p.step(t)
				select {
				case said := <-p.says:
					t.Errorf("answered before anything was durable: %s", said)
				case <-time.After(300 * time.Millisecond): // the longer, the surer it fails
				}
				close(kv.free)
				if t.Failed() {
					return
				}
				p.await(t, "first: "+unix.EIO.Error(), "second: done")
				if kv.made.Load() == before {
					t.Error("closed, and nothing was stored")
				}
			})
		}
	})
}

// endsOfCopy are the calls that make what was written through a descriptor durable.
var endsOfCopy = map[string]func(fd int) error{
	"close": unix.Close,
	"fsync": func(fd int) error {
		err := unix.Fsync(fd)
		return errors.Join(err, unix.Close(fd))
	},
}

// copiesEnv has the call and the file for a child process of TestCopiesProgram.
const copiesEnv = "OGW_TEST_COPIES"

// TestCopiesProgram is the program that has the two copies. It is another process,
// since a server's threads without /dev/fuse close copies of what their process has
// open, too (see sizes), and that could be the commit that fails.
func TestCopiesProgram(t *testing.T) {
	end, name, ok := strings.Cut(os.Getenv(copiesEnv), " ")
	if !ok {
		t.Skip("part of TestCopiesOfDescriptorClosed")
	}
	first, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	must(t, err)
	second, err := unix.FcntlInt(uintptr(first), unix.F_DUPFD_CLOEXEC, 0)
	must(t, err)
	_, err = unix.Write(first, []byte("acknowledged"))
	must(t, err)
	say := func(what string, err error) {
		if err != nil {
			fmt.Println(what + err.Error())
			return
		}
		fmt.Println(what + "done")
	}
	fmt.Println("written")
	steps := bufio.NewReader(os.Stdin)
	_, err = steps.ReadByte()
	must(t, err)
	go func() { say("first: ", endsOfCopy[end](first)) }()
	_, err = steps.ReadByte()
	must(t, err)
	go func() { say("second: ", unix.Close(second)) }()
	_, _ = io.Copy(io.Discard, steps) // the test ends it
}

// program is a process that runs a test as the program of another.
type program struct {
	steps io.Writer
	says  chan string // lines of its output
}

func startProgram(t *testing.T, test, env string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, childTimeout)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env)
	steps, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &program{steps: steps, says: make(chan string)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.says <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = steps.Close()
		cancel()
		<-read
		_ = cmd.Wait() // it was killed
	})
	return p
}

// step lets the process do what comes next.
func (p *program) step(t *testing.T) {
	t.Helper()
	_, err := p.steps.Write([]byte{'\n'})
	must(t, err)
}

// await returns when the process printed all of lines, in whatever order.
func (p *program) await(t *testing.T, lines ...string) {
	t.Helper()
	open := make(map[string]bool)
	for _, l := range lines {
		open[l] = true
	}
	inTime(t, strings.Join(lines, ", "), func() {
		for len(open) > 0 {
			said := <-p.says
			if !open[said] {
				t.Errorf("the process says %q, want one of %q", said, lines)
				return
			}
			delete(open, said)
		}
	})
}
