package fusemount

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// replace replaces the file's content as another process would do.
func (k *killed) replace(text string) {
	k.Helper()
	other, err := vfs.Open(bg, mem.New(mem.Options{Disk: k.disk}), vfs.Config{NoBackground: true})
	must(k.T, err)
	_, err = other.PutObject(bg, vfs.ObjectName{Bucket: "bucket", Key: "f"}, strings.NewReader(text), vfs.PutOptions{Size: int64(len(text))})
	must(k.T, err)
}

// tells flushes twice: the first time, the caller gets errno.
func (k *killed) tells(what string, fh uint64, errno syscall.Errno) {
	k.Helper()
	for _, want := range []syscall.Errno{errno, 0} {
		if st := k.flush(fh); syscall.Errno(st) != want {
			k.Errorf("flush of %s: %v, want %v", what, st, want)
		}
	}
}

// Who wrote before a take-over cannot write to what a PUT behind it made; who did
// not can.
func TestReplacedBehindTakeOver(t *testing.T) {
	k := begin(t, "before")
	writer, idle := k.open(2, unix.O_RDWR), k.open(4, unix.O_RDWR)
	if st := k.write(writer, 0, "old"); !st.Ok() {
		t.Fatal(st)
	}
	k.tells("the writer", writer, 0)
	for range 2 { // who goes on knows it from the first, too
		k.next(nil)
	}
	if st := k.write(writer, 3, "OLD"); !st.Ok() {
		t.Error(st)
	}
	k.tells("the writer", writer, 0)
	k.put("after!")
	k.next(nil)
	if st := k.write(writer, 0, "bad"); syscall.Errno(st) != unix.ESTALE {
		t.Errorf("write to other content: %v", st)
	}
	k.tells("the writer", writer, 0) // nothing was lost
	if st := k.write(idle, 1, "NEW"); !st.Ok() {
		t.Error(st)
	}
	k.tells("the other", idle, 0)
	k.holds("aNEWr!")
}

// Writes that were answered and could not be stored at a take-over are replaced
// behind it: the writer gets the error, from the server of that time.
func TestReplacedInBuffers(t *testing.T) {
	for name, last := range map[string]struct {
		act  func(k *killed)
		want syscall.Errno
	}{
		"same server": {func(*killed) {}, unix.ESTALE},
		"next server": {func(k *killed) {
			must(k.T, k.fs.Flush(bg, k.file)) // which finds it out
			k.next(nil)
		}, unix.EIO},
		"found by the next server": {func(k *killed) { k.next(nil) }, unix.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			k := begin(t, "before")
			writer, reader := k.open(2, unix.O_RDWR), k.open(4, unix.O_RDONLY)
			if st := k.write(writer, 0, "old"); !st.Ok() {
				t.Fatal(st)
			}
			k.next(cluster.ErrNoSpace)
			k.faults.Clear()
			k.replace("after!")
			last.act(k)
			k.tells("the writer", writer, last.want)
			k.tells("the reader", reader, 0)
		})
	}
}

// Writes that a PUT took are not forgotten by the end of the server that found out.
func TestReplacedBeforeTakeOver(t *testing.T) {
	k := begin(t, "before")
	writer, told, idle := k.open(2, unix.O_RDWR), k.open(4, unix.O_RDWR), k.open(6, unix.O_RDWR)
	for _, fh := range []uint64{writer, told} {
		if st := k.write(fh, 0, "old"); !st.Ok() {
			t.Fatal(st)
		}
	}
	k.replace("after!")
	must(t, k.fs.Flush(bg, k.file))
	k.tells("who asks at once", told, unix.ESTALE)
	k.next(nil)
	k.tells("who asks later", writer, unix.EIO)
	k.tells("who asked at once", told, 0)
	k.tells("who did not write", idle, 0)
	if st := k.write(told, 0, "bad"); syscall.Errno(st) != unix.ESTALE {
		t.Errorf("write to other content: %v", st)
	}
	k.holds("after!")
}
