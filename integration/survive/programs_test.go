package survive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// programs run in a folder of the mount until done, and then look at what they
// have. Each step is short, so that the longest is the longest pause.
var programs = map[string]func(w *world) error{
	"append": appendLines, "churn": churn, "unlinked": unlinked, "sync": syncing, "locks": locks, "list": list, "mapped": mapped,
	"burst": burst, "two": twoMounts, "removed": removed, "reread": reread, "rewrite": rewrite, "count": count, "follow": follow, "unsynced": unsynced,
}

// together are those that run through kills and restarts beside each other.
var together = []string{"append", "churn", "unlinked", "sync", "locks", "list", "mapped"}

// world is what a program has.
type world struct {
	name    string
	dir     string
	stop    string // a file that ends it
	longest time.Duration
	steps   int
}

// begun and a program's name are added to the name of the file that ends it, when
// it is about to make its first step.
const begun = ".begun."

// run calls step until the end, and once at least.
func (w *world) run(step func(i int) error) error {
	if err := os.WriteFile(w.stop+begun+w.name, nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(w.stop); err == nil && w.steps > 0 {
			return nil
		}
		begin := time.Now()
		if err := step(w.steps); err != nil {
			return fmt.Errorf("step %d: %w", w.steps, err)
		}
		w.steps++
		w.longest = max(w.longest, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
}

// appendLines appends without a sync, and reads along as tail -f does.
func appendLines(w *world) error {
	f, err := os.OpenFile("log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	tail, err := os.Open("log")
	if err != nil {
		return err
	}
	var want, seen []byte
	buf := make([]byte, 4096)
	err = w.run(func(i int) error {
		line := fmt.Appendf(nil, "line %d\n", i)
		if n, err := f.Write(line); err != nil || n != len(line) {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
		want = append(want, line...)
		n, err := tail.Read(buf)
		seen = append(seen, buf[:n]...)
		return err
	})
	if err != nil {
		return err
	}
	rest, err := io.ReadAll(tail)
	if err != nil || !bytes.Equal(append(seen, rest...), want) {
		return fmt.Errorf("the reader saw %d bytes of %d, %w", len(seen)+len(rest), len(want), err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	got, err := os.ReadFile("log")
	if err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes of %d, %w", len(got), len(want), err)
	}
	return nil
}

// churn makes and removes names; none may be there already, or be missing.
func churn(w *world) error {
	var kept []string
	err := w.run(func(i int) error {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		fd, err := unix.Open(a, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		for _, do := range []struct {
			what string
			err  func() error
		}{
			{"write", func() error { _, err := unix.Write(fd, []byte(a)); return err }},
			{"close", func() error { return unix.Close(fd) }},
			{"link", func() error { return unix.Link(a, b) }},
			{"rename", func() error { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, a+"-", unix.RENAME_NOREPLACE) }},
			{"unlink", func() error { return unix.Unlink(b) }},
			{"symlink", func() error { return unix.Symlink(a, b) }},
			{"unlink of the symlink", func() error { return unix.Unlink(b) }},
			{"mkdir", func() error { return unix.Mkdir(b, 0o755) }},
			{"rmdir", func() error { return unix.Rmdir(b) }},
			{"setxattr", func() error { return unix.Setxattr(a+"-", "user.a", []byte("1"), unix.XATTR_CREATE) }},
			{"removexattr", func() error { return unix.Removexattr(a+"-", "user.a") }},
			{"mkfifo", func() error { return unix.Mkfifo(b, 0o644) }},
			{"unlink of the fifo", func() error { return unix.Unlink(b) }},
		} {
			if err := do.err(); err != nil {
				return fmt.Errorf("%s: %w", do.what, err)
			}
		}
		if i%10 == 0 {
			kept = append(kept, a+"-")
			return nil
		}
		return unix.Unlink(a + "-")
	})
	if err != nil {
		return err
	}
	for _, name := range kept {
		if b, err := os.ReadFile(name); err != nil || string(b)+"-" != name {
			return fmt.Errorf("%s: %q, %w", name, b, err)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != len(kept) {
		return fmt.Errorf("%d names of %d, %w", len(entries), len(kept), err)
	}
	return nil
}

// unlinked writes to a file without a name here and there, never with a sync.
func unlinked(w *world) error {
	f, err := os.OpenFile("f", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := os.Remove("f"); err != nil {
		return err
	}
	model := make([]byte, 1<<20)
	if err := f.Truncate(int64(len(model))); err != nil {
		return err
	}
	err = w.run(func(i int) error {
		off, n := rand.IntN(len(model)-9000), rand.IntN(9000)
		for k := range model[off : off+n] {
			model[off+k] = byte(i + k)
		}
		if _, err := f.WriteAt(model[off:off+n], int64(off)); err != nil {
			return err
		}
		got := make([]byte, 5000)
		at := rand.IntN(len(model) - len(got))
		if _, err := f.ReadAt(got, int64(at)); err != nil || !bytes.Equal(got, model[at:at+len(got)]) {
			return fmt.Errorf("other bytes at %d, %w", at, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	got := make([]byte, len(model))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, model) {
		return fmt.Errorf("other bytes, %w", err)
	}
	return f.Close()
}

// syncing overwrites with syncs, as a database does, and large writes.
func syncing(w *world) error {
	f, err := os.OpenFile("db", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	model := make([]byte, 2<<20)
	if _, err := f.WriteAt(model, 0); err != nil {
		return err
	}
	err = w.run(func(i int) error {
		off := rand.IntN(len(model)/8192*3/4) * 8192
		n := 8192
		if i%8 == 0 {
			n = 512 << 10
		}
		for k := range model[off : off+n] {
			model[off+k] = byte(i*7 + k)
		}
		if _, err := f.WriteAt(model[off:off+n], int64(off)); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if got, err := os.ReadFile("db"); err != nil || !bytes.Equal(got, model) {
		return fmt.Errorf("other bytes, %w", err)
	}
	return nil
}

// locks holds a range by fcntl, a file by flock and one by an open file
// description; another open file must be refused all the time, and one that
// waits gets its lock when it may.
func locks(w *world) error {
	open := func() int {
		fd, err := unix.Open("l", unix.O_CREAT|unix.O_RDWR, 0o600)
		if err != nil {
			panic(err)
		}
		return fd
	}
	mine, other, waiter := open(), open(), open()
	ofd := func(fd int, cmd int, typ int16, start int64) error {
		return unix.FcntlFlock(uintptr(fd), cmd, &unix.Flock_t{Type: typ, Start: start, Len: 10})
	}
	if err := ofd(mine, unix.F_SETLK, unix.F_WRLCK, 100); err != nil { // the process's
		return err
	}
	if err := ofd(mine, unix.F_OFD_SETLK, unix.F_WRLCK, 0); err != nil {
		return err
	}
	if err := unix.Flock(mine, unix.LOCK_EX); err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		for {
			err := ofd(waiter, unix.F_OFD_SETLKW, unix.F_WRLCK, 0)
			if !errors.Is(err, unix.EINTR) {
				got <- err
				return
			}
		}
	}()
	err := w.run(func(i int) error {
		if err := ofd(other, unix.F_OFD_SETLK, unix.F_RDLCK, 5); !errors.Is(err, unix.EAGAIN) {
			return fmt.Errorf("the range of an open file description: %w", err)
		}
		if err := ofd(other, unix.F_OFD_SETLK, unix.F_RDLCK, 105); !errors.Is(err, unix.EAGAIN) {
			return fmt.Errorf("the range of a process: %w", err)
		}
		if err := unix.Flock(other, unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EAGAIN) {
			return fmt.Errorf("flock: %w", err)
		}
		if err := ofd(other, unix.F_OFD_SETLK, unix.F_WRLCK, int64(1000+10*(i%50))); err != nil {
			return fmt.Errorf("a free range: %w", err)
		}
		if i%50 == 49 {
			if err := unix.FcntlFlock(uintptr(other), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}); err != nil {
				return fmt.Errorf("unlock: %w", err)
			}
		}
		select {
		case err := <-got:
			return fmt.Errorf("who waits has the lock: %w", err)
		default:
			return nil
		}
	})
	if err != nil {
		return err
	}
	if err := unix.Close(mine); err != nil {
		return err
	}
	select {
	case err := <-got:
		return err
	case <-time.After(10 * time.Second):
		return errors.New("who waits does not get the lock")
	}
}

// list reads a directory, step by step, and each name must come once.
func list(w *world) error {
	const names = 3000
	var want []string
	for i := range names {
		name := fmt.Sprintf("a-rather-long-name-of-a-file-%05d", i)
		want = append(want, name)
		if err := unix.Mknod(name, unix.S_IFREG|0o644, 0); err != nil {
			return err
		}
	}
	var d *os.File
	var got []string
	return w.run(func(int) (err error) {
		if d == nil {
			if d, err = os.Open("."); err != nil {
				return err
			}
		}
		more, err := d.Readdirnames(20)
		if err == nil {
			got = append(got, more...)
			return nil
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%d names of %d", len(got), len(want))
		}
		got = nil
		err = d.Close()
		d = nil
		return err
	})
}

// mapped stores into a mapping and reads the file.
func mapped(w *world) error {
	f, err := os.OpenFile("m", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(1 << 20); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	model := make([]byte, len(m))
	err = w.run(func(i int) error {
		at := rand.IntN(len(m))
		m[at], model[at] = byte(i), byte(i)
		if i%20 == 0 {
			return unix.Msync(m, unix.MS_SYNC)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !bytes.Equal(m, model) {
		return errors.New("the mapping has other bytes")
	}
	if err := errors.Join(unix.Munmap(m), f.Close()); err != nil {
		return err
	}
	if got, err := os.ReadFile("m"); err != nil || !bytes.Equal(got, model) {
		return fmt.Errorf("the file has other bytes, %w", err)
	}
	return nil
}

// program is the main function of one of them: name, folder, file that ends it.
// What follows a point in the name distinguishes several of one kind.
func program(args []string) int {
	w := &world{name: args[0], dir: args[1], stop: args[2]}
	err := os.Mkdir(filepath.Join(w.dir, args[0]), 0o755)
	if err == nil {
		err = os.Chdir(filepath.Join(w.dir, args[0]))
	}
	if err == nil {
		fmt.Println("ready")
		kind, _, _ := strings.Cut(w.name, ".")
		err = programs[kind](w)
	}
	if err != nil {
		fmt.Printf("%s: %v\n", args[0], err)
		return 1
	}
	fmt.Printf("%s: %d steps, the longest %v\n", args[0], w.steps, w.longest.Round(time.Millisecond))
	return 0
}
