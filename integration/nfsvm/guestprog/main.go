// Command guestprog runs in the virtual machine and does what a shell script
// does too slowly or not exactly enough there.
//
//	guestprog write FILE BYTES      a file whose bytes show where they stand; synced
//	guestprog verify FILE BYTES     compares such a file
//	guestprog fill DIR N            N empty files
//	guestprog thin DIR N            removes every other one while DIR is listed
//	guestprog share DIR1 DIR2 N     N changes through one mount, seen through the other
//
// It prints what went wrong and exits with 1.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("guestprog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("too few arguments")
	}
	n, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	if err != nil {
		return err
	}
	switch args[0] {
	case "write":
		return write(args[1], n)
	case "verify":
		return verify(args[1], n)
	case "fill":
		return each(n, func(i int64) error {
			f, err := os.Create(name(args[1], i))
			if err != nil {
				return err
			}
			return f.Close()
		})
	case "thin":
		return thin(args[1], n)
	case "share":
		return share(args[1], args[2], n)
	}
	return fmt.Errorf("no command %q", args[0])
}

const block = 1 << 20

// pattern fills p, which stands at off, with its own offsets, mixed so that
// no two blocks look alike to anything that compares or deduplicates.
func pattern(p []byte, off int64) {
	for i := 0; i+8 <= len(p); i += 8 {
		x := uint64(off) + uint64(i)
		binary.LittleEndian.PutUint64(p[i:], x*0x9e3779b97f4a7c15^x>>17)
	}
}

func write(file string, size int64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	p := make([]byte, block)
	for off := int64(0); off < size; off += block {
		pattern(p, off)
		if _, err := f.Write(p[:min(block, size-off)]); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

func verify(file string, size int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	want, got := make([]byte, block), make([]byte, block)
	for off := int64(0); off < size; off += block {
		n := min(block, size-off)
		pattern(want, off)
		if _, err := io.ReadFull(f, got[:n]); err != nil {
			return fmt.Errorf("at %d: %w", off, err)
		}
		if !bytes.Equal(want[:n], got[:n]) {
			return fmt.Errorf("the block at %d differs", off)
		}
	}
	if n, err := f.Read(got); n != 0 || err != io.EOF {
		return fmt.Errorf("bytes behind the end: %d, %w", n, err)
	}
	return nil
}

func name(dir string, i int64) string { return filepath.Join(dir, fmt.Sprintf("file-%07d", i)) }

// workers is how many system calls wait for the server at a time.
const workers = 8

// each runs do for 0 to n-1, some at a time.
func each(n int64, do func(int64) error) error {
	var next atomic.Int64
	errs := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for errs[w] == nil {
				i := next.Add(1) - 1
				if i >= n {
					return
				}
				errs[w] = do(i)
			}
		}()
	}
	wait.Wait()
	return errors.Join(errs...)
}

// list reads the names of a directory and counts how often each is shown.
func list(dir string) (map[string]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	seen := make(map[string]int, len(names))
	for _, n := range names {
		seen[n]++
	}
	return seen, err
}

// thin removes the odd files of a directory while it is listed over and over:
// every listing must show all of the even ones.
func thin(dir string, n int64) error {
	done := make(chan error, 1)
	go func() {
		done <- each(n/2, func(i int64) error { return os.Remove(name(dir, 2*i+1)) })
	}()
	for round, last := 1, false; ; round++ {
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			last = true
		default:
		}
		seen, err := list(dir)
		if err != nil {
			return fmt.Errorf("listing %d: %w", round, err)
		}
		missing, twice := 0, 0
		for i := int64(0); i < n; i += 2 {
			switch seen[filepath.Base(name(dir, i))] {
			case 0:
				missing++
			case 1:
			default:
				twice++
			}
		}
		fmt.Printf("listing %d: %d names, %d missing, %d more than once\n", round, len(seen), missing, twice)
		switch {
		case missing > 0:
			return errors.New("a listing misses files that were there all the time")
		case last && (len(seen) != int((n+1)/2) || twice > 0):
			return fmt.Errorf("the last listing shows %d names, %d of them more than once", len(seen), twice)
		case last:
			return nil
		}
	}
}

// share changes files through one mount and looks at them through the other:
// what is closed here must be seen by an open there.
func share(a, b string, n int64) error {
	for i := range n {
		if i%2 == 1 {
			a, b = b, a
		}
		text := fmt.Sprintf("version %d", i)
		if err := os.WriteFile(filepath.Join(a, "shared"), []byte(text), 0o644); err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(b, "shared"))
		if err != nil {
			return err
		}
		if string(got) != text {
			return fmt.Errorf("%q after %q was written through the other mount", got, text)
		}
		f := fmt.Sprintf("new-%d", i)
		if err := os.Mkdir(filepath.Join(a, f), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(b, f), filepath.Join(b, f+"-moved")); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(a, f+"-moved")); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(b, f+"-moved")); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("still there after removal: %w", err)
		}
	}
	return nil
}
