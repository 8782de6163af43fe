package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"

	"ogw/integration/testenv"
)

// TestManyGatewaysMounts has two gateways over one store, each with a mount.
func TestManyGatewaysMounts(t *testing.T) { onStores(t, testManyGatewaysMounts) }

// mounted is a gateway with a mount of the bucket of all.
type mounted struct {
	*testenv.Server
	dir string
	s3  *minio.Client
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

// needMounts skips where nothing can be mounted.
func needMounts(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("mounts need /dev/fuse, and root")
	}
}

func testManyGatewaysMounts(t *testing.T, x *shared) {
	needMounts(t)
	x.manyGateways()
	sa := x.gateway(nil)
	sb := x.gateway(sa)
	sb.KeyID, sb.Secret = sa.KeyID, sa.Secret
	a, b := &mounted{sa, "", s3Client(t, sa)}, &mounted{sb, "", s3Client(t, sb)}
	if err := a.s3.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	a.dir = filepath.Join(a.Mount(), "bkt")
	top := b.Mount("-o", "survive")
	b.dir = filepath.Join(top, "bkt")
	t.Run("refused", func(t *testing.T) {
		for _, o := range []string{"writeback", "entry_timeout=1"} {
			if out, err := a.With(t).TryOGW("mount", "-o", o, testenv.TempDir(t)); err == nil || !strings.Contains(out, "not beside other gateways (cluster.gateways)") {
				t.Errorf("%s: %v\n%s", o, err, out)
			}
		}
	})
	t.Run("seen", func(t *testing.T) { mountsSee(t, a, b) })
	t.Run("doors", func(t *testing.T) { mountsAndDoors(t, a, b) })
	t.Run("appends", func(t *testing.T) { mountsAppend(t, a, b) })
	t.Run("open", func(t *testing.T) { x.mountsHold(t, a, b) })
	t.Run("killed", func(t *testing.T) { x.mountsSurvive(t, a, b) })
	t.Run("put out", func(t *testing.T) { mountsPutOut(t, a, b) })
	b.OGW("umount", top)
	t.Run("gone", func(t *testing.T) { mountsGone(t, a, b) })
	if out := a.OGW("check"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
		t.Errorf("check:\n%s", out)
	}
}

// appendTo appends a line as a shell does.
func appendTo(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// mountsSee appends at each in turns: the other one's next open shows it, and so does what it
// has open since before.
func mountsSee(t *testing.T, a, b *mounted) {
	text, missing := "", 0
	var open [2]*os.File
	for i := range 50 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		line := fmt.Sprint("line ", i, "\n")
		if err := appendTo(from.path("log"), line); err != nil {
			t.Fatal(err)
		}
		text += line
		got, err := os.ReadFile(to.path("log"))
		if err != nil || string(got) != text {
			missing++
		}
		if f := open[i%2]; f != nil {
			if got, err := readAll(f); err != nil || got != text {
				t.Errorf("round %d: what was open holds %d bytes, want %d, %v", i, len(got), len(text), err)
			}
			continue
		}
		if open[i%2], err = os.Open(to.path("log")); err != nil {
			t.Fatal(err)
		}
		defer open[i%2].Close()
	}
	if missing > 0 {
		t.Errorf("%d of 50 rounds are missing", missing)
	}
}

// mountsAndDoors changes names and bytes through each door of one gateway, and looks at the
// mount of the other one.
func mountsAndDoors(t *testing.T, a, b *mounted) {
	nfs := dialNFS(t, a.Server)
	for i := range 30 {
		text := fmt.Sprint("text ", i, strings.Repeat("x", i*5000)) // inline, and blobs
		var err error
		switch i % 3 {
		case 0:
			err = put(a.s3, "file", []byte(text))
		case 1:
			err = nfs.Write("bkt/file", text)
		case 2:
			err = os.WriteFile(a.path("file"), []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(b.path("file"))
		if err != nil || string(got) != text {
			t.Fatalf("round %d: %d bytes of %d, %v", i, len(got), len(text), err)
		}
		wantObject(t, b.s3, "file", []byte(text))
		name := fmt.Sprint("renamed", i)
		if i%2 == 0 {
			err = nfs.Rename("bkt/file", "bkt/"+name)
		} else {
			err = os.Rename(a.path("file"), a.path(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(b.path("file")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the old name: %v", err)
		}
		names, err := filepath.Glob(b.path("renamed*"))
		if err != nil || len(names) != 1 || filepath.Base(names[0]) != name {
			t.Fatalf("listed %q, %v", names, err)
		}
		if err := a.s3.RemoveObject(context.Background(), "bkt", name, minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(b.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("what was removed: %v", err)
		}
	}
}

// mountsAppend has writers at both append lines and sync them: none that was acknowledged is
// missing.
func mountsAppend(t *testing.T, a, b *mounted) {
	const writers, lines = 4, 40
	var wg sync.WaitGroup
	for w := range writers {
		f, err := os.OpenFile([]*mounted{a, b}[w%2].path("storm"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		wg.Go(func() {
			for i := range lines {
				_, err := fmt.Fprintf(f, "writer %d line %d %s\n", w, i, strings.Repeat("x", i*20))
				if err := errors.Join(err, f.Sync()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, m := range []*mounted{a, b} {
		got, err := os.ReadFile(m.path("storm"))
		if err != nil {
			t.Fatal(err)
		}
		for w := range writers {
			for i := range lines {
				if line := fmt.Sprintf("writer %d line %d %s\n", w, i, strings.Repeat("x", i*20)); strings.Count(string(got), line) != 1 {
					t.Errorf("writer %d line %d is there %d times", w, i, strings.Count(string(got), line))
				}
			}
		}
	}
}

// mountsHold removes at one gateway what programs have open, or work in, at the other one.
func (x *shared) mountsHold(t *testing.T, a, b *mounted) {
	text := string(big[:1<<20])
	if err := errors.Join(os.WriteFile(a.path("open"), []byte(text), 0o644), os.WriteFile(a.path("other"), []byte(text), 0o644), os.Mkdir(a.path("dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	f, e1 := os.OpenFile(b.path("open"), os.O_RDWR, 0)
	dir, e2 := os.Open(b.path("dir"))
	if err := errors.Join(e1, e2); err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	defer f.Close()
	before := len(x.blobNames(t))
	if err := errors.Join(os.Remove(a.path("open")), os.Remove(a.path("other")), os.Remove(a.path("dir"))); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(x.blobNames(t)) < before }) // the collector has been there
	if got, err := readAll(f); err != nil || got != text {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	if _, err := f.WriteAt([]byte("written"), 0); err != nil {
		t.Error(err)
	}
	if got, err := readAll(f); err != nil || got != "written"+text[7:] {
		t.Errorf("%d bytes of %d after a write, %v", len(got), len(text), err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Nlink != 0 {
		t.Errorf("the directory has %d links, %v", st.Nlink, err)
	}
	if err := errors.Join(f.Close(), dir.Close()); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return len(x.blobNames(t)) < before-1 })
}

// holding is a program that has a file open: this one could not start a server while it had
// one itself, since a fork closes it, which waits for the server.
type holding struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  bytes.Buffer
	done chan struct{} // closed when out has all
}

// hold has a shell open a file as descriptor 3 and do first, and then, when it is told to,
// read it from where it is.
func hold(t *testing.T, name, first string) *holding {
	t.Helper()
	h := &holding{cmd: exec.Command("sh", "-c", `exec 3<>"$1"; `+first+`; echo; read x; cat <&3`, "sh", name)}
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, 1)) // it has done that
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		_, _ = io.Copy(&h.out, out)
	}()
	return h
}

// read returns what the file holds.
func (h *holding) read() (string, error) {
	_, err := h.in.Write([]byte("\n"))
	<-h.done
	return h.out.String(), errors.Join(err, h.cmd.Wait())
}

// putOut returns how many gateways these have put out: whoever looks first does that for one
// that ended, also the process after it.
func putOut(t *testing.T, by ...*mounted) (n int) {
	for _, m := range by {
		log, err := os.ReadFile(m.LogFile())
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(log, []byte("is put out"))
	}
	return n
}

// mountsSurvive kills a gateway whose mount survives it: the next server goes on with what
// programs have open, also with what another gateway removed meanwhile.
func (x *shared) mountsSurvive(t *testing.T, a, b *mounted) {
	text := string(big[:1<<20])
	if err := errors.Join(os.WriteFile(a.path("open"), []byte(text), 0o644), os.WriteFile(a.path("kept"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	open, unsent := hold(t, b.path("open"), ":"), hold(t, b.path("kept"), "printf unsent >&3")
	b.Kill()
	if err := errors.Join(os.Remove(a.path("open")), appendTo(a.path("new"), "new")); err != nil {
		t.Fatal(err)
	}
	before := putOut(t, a, b)
	b.Start()
	waitFor(t, func() bool { return putOut(t, a, b) > before }) // the one before
	before = len(x.blobNames(t))
	if err := errors.Join(os.WriteFile(a.path("other"), []byte(text), 0o644), os.Remove(a.path("other"))); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(x.blobNames(t)) <= before }) // the collector has been there
	if got, err := open.read(); err != nil || got != text {
		t.Errorf("%d bytes of %d of what was removed, %v", len(got), len(text), err)
	}
	if got, err := unsent.read(); err != nil || got != "" {
		t.Errorf("%q behind what was written, %v", got, err)
	}
	for _, m := range []*mounted{a, b} {
		kept, e1 := os.ReadFile(m.path("kept"))
		fresh, e2 := os.ReadFile(m.path("new"))
		if err := errors.Join(e1, e2); err != nil || string(kept) != "unsent" || string(fresh) != "new" {
			t.Errorf("%q, %q, %v", kept, fresh, err)
		}
	}
}

// mountsPutOut has a gateway stand still until the other one put it out. What its mount answers
// from then on is new, or an error; when it has registered anew, it is well.
func mountsPutOut(t *testing.T, a, b *mounted) {
	if err := os.WriteFile(a.path("file"), []byte("old bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := hold(t, b.path("file"), `cat "$1" >/dev/null`)
	before := putOut(t, a)
	process := b.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return putOut(t, a) > before })
	if err := os.WriteFile(a.path("file"), []byte("new bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	late := exec.Command("cat", b.path("file"))
	var got bytes.Buffer
	late.Stdout = &got
	if err := errors.Join(late.Start(), process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-process.Done():
	case <-time.After(time.Minute):
		t.Fatal("a gateway that was put out goes on")
	}
	b.Process = nil
	b.Start()
	if err := late.Wait(); err == nil && got.String() != "new bytes" {
		t.Errorf("%q is read of a gateway that was put out", got.String())
	}
	if got, err := open.read(); err != nil || got != "new bytes" {
		t.Errorf("%q, %v", got, err)
	}
	if err := appendTo(b.path("file"), ", and more"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(a.path("file")); err != nil || string(got) != "new bytes, and more" {
		t.Errorf("%q, %v", got, err)
	}
}

// mountsGone kills a gateway whose mount does not survive it: the mount says so, and the other
// gateway goes on.
func mountsGone(t *testing.T, a, b *mounted) {
	b.dir = filepath.Join(b.With(t).Mount(), "bkt")
	if err := appendTo(b.path("left"), "left"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(b.path("left"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.Kill()
	if _, err := f.ReadAt(make([]byte, 10), 0); err == nil || errors.Is(err, io.EOF) {
		t.Error("a mount without a server is read")
	}
	// ECANCELED is of a ring whose process has ended, before the kernel has ended the mount.
	if _, err := os.Stat(b.path("left")); !slices.ContainsFunc([]error{syscall.ENOTCONN, syscall.ECONNABORTED, syscall.ECANCELED}, func(e error) bool { return errors.Is(err, e) }) {
		t.Errorf("a mount without a server: %v", err)
	}
	if got, err := os.ReadFile(a.path("left")); err != nil || string(got) != "left" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(a.path("left")); err != nil {
		t.Error(err)
	}
	f.Close()
	b.Start() // which makes the mount again
	if _, err := os.Stat(b.path("left")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed: %v", err)
	}
}
