package posix

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// contentCases: what is not a read, a write or a truncation alone.
var contentCases = []namedCase{
	{"copy_file_range: errors and bounds", copyErrors},
	{"copy_file_range between files, links and removed files", copyBetween},
	{"sendfile and splice", splices},
	{"vectors and flags of pwritev2", vectors},
	{"mappings and the end of the file", mappedEnd},
	{"mappings see writes of every kind, and the other way round", mappedCoherence},
	{"a buffer that is a mapping of the same file", mappedBuffer},
	{"direct, cached and mapped at once", directCoherence},
	{"data and holes", dataAndHoles},
	{"blocks of what was just written", func(t *T, d string) {
		// Programs that copy take a file without blocks for one hole.
		for _, n := range []int64{1, 100, 4096, 70_000, 1 << 20} {
			p := fmt.Sprintf("%s/%d", d, n)
			fd := open(t, p, unix.O_CREAT|unix.O_RDWR)
			pwrite(t, fd, pattern(n), 0)
			var st unix.Stat_t
			must(t, unix.Fstat(fd, &st))
			check(t, st.Blocks > 0 || n < 4096, "%d bytes have no blocks", n) // a few bytes may stand in the inode
			must(t, unix.Fsync(fd))
			must(t, unix.Fstat(fd, &st))
			check(t, st.Size == n && (st.Blocks > 0 || n < 4096), "%d bytes have %d blocks after fsync", n, st.Blocks)
		}
	}},
	{"the limit of a process on file sizes", fileSizeLimit},
}

func copyErrors(t *T, d string) {
	write(t, d+"/src", "0123456789")
	write(t, d+"/dst", "abcdefghij")
	r, w := open(t, d+"/src", unix.O_RDONLY), open(t, d+"/dst", unix.O_WRONLY)
	both, app := open(t, d+"/src", unix.O_RDWR), open(t, d+"/dst", unix.O_WRONLY|unix.O_APPEND)
	dfd, p := open(t, d, unix.O_RDONLY|unix.O_DIRECTORY), open(t, d+"/src", unix.O_PATH)
	must(t, unix.Mkfifo(d+"/fifo", 0o600))
	pipe := open(t, d+"/fifo", unix.O_RDWR)
	for _, c := range []struct {
		what     string
		in, out  int
		inOff    int64
		outOff   int64
		n, flags int
		want     syscall.Errno
	}{
		{"to a descriptor for reading", r, r, 0, 100, 5, 0, unix.EBADF},
		{"from a descriptor for writing", w, w, 0, 100, 5, 0, unix.EBADF},
		{"to O_APPEND", r, app, 0, 0, 5, 0, unix.EBADF},
		{"from O_PATH", p, w, 0, 0, 5, 0, unix.EBADF},
		{"from a directory", dfd, w, 0, 0, 5, 0, unix.EISDIR},
		{"to a directory", r, dfd, 0, 0, 5, 0, unix.EISDIR},
		{"from a fifo", pipe, w, 0, 0, 5, 0, unix.EINVAL},
		{"to a fifo", r, pipe, 0, 0, 5, 0, unix.EINVAL},
		{"with flags", r, w, 0, 0, 5, 1, unix.EINVAL},
		{"onto itself", both, both, 0, 4, 5, 0, unix.EINVAL},
		{"beside itself", both, both, 0, 10, 5, 0, 0},
		{"beyond the largest offset", r, w, 0, 1<<63 - 1, 5, 0, unix.EFBIG},
		{"with an offset that turns over", r, w, 0, -1, 5, 0, unix.EOVERFLOW},
	} {
		in, out := c.inOff, c.outOff
		_, err := unix.CopyFileRange(c.in, &in, c.out, &out, c.n, c.flags)
		if c.want == unix.EISDIR && errors.Is(err, unix.EBADF) {
			err = c.want // a directory cannot be opened to write
		}
		wantErr(t, "copy_file_range "+c.what, err, c.want)
	}
	in, out := int64(3), int64(0)
	n, err := unix.CopyFileRange(r, &in, w, &out, 1<<40, 0)
	check(t, err == nil && n == 12 && in == 15 && out == 12, "a length beyond the end: %d, %v, offsets %d and %d", n, err, in, out)
	n, err = unix.CopyFileRange(r, &in, w, &out, 0, 0)
	check(t, err == nil && n == 0, "nothing: %d, %v", n, err)
	wantText(t, d+"/dst", "3456789"+"01234")
	if t.run.Other != "" {
		f, err := os.CreateTemp(t.run.Other, "posix-*")
		must(t, err)
		defer os.Remove(f.Name())
		defer f.Close()
		_, err = unix.CopyFileRange(r, nil, int(f.Fd()), nil, 5, 0)
		wantErr(t, "copy_file_range to another file system", err, unix.EXDEV)
	}
}

func copyBetween(t *T, d string) {
	data := pattern(700_001)
	must(t, os.WriteFile(d+"/src", data, 0o644))
	src := open(t, d+"/src", unix.O_RDONLY)
	must(t, os.Mkdir(d+"/sub", 0o755))
	for _, p := range []string{"/dst", "/sub/dst"} {
		dst := open(t, d+p, unix.O_CREAT|unix.O_RDWR)
		copyAll(t, src, dst, len(data))
		sameFile(t, d+p, data, "a copy at "+p)
	}
	// The file that is copied from, and the one that is copied to, have no name.
	must(t, unix.Unlink(d+"/src"))
	dst := open(t, d+"/gone", unix.O_CREAT|unix.O_RDWR)
	must(t, unix.Unlink(d+"/gone"))
	copyAll(t, src, dst, len(data))
	check(t, bytes.Equal(pread(t, dst, len(data)+1, 0), data), "a copy between removed files differs")
	// What is copied is what was written, not yet stored.
	a, b := open(t, d+"/a", unix.O_CREAT|unix.O_RDWR), open(t, d+"/b", unix.O_CREAT|unix.O_RDWR)
	for i := range 20 {
		text := fmt.Appendf(nil, "%05d", i)
		pwrite(t, a, text, 0)
		copyAll(t, a, b, len(text))
		check(t, bytes.Equal(pread(t, b, 10, 0), text), "copy %d of what was just written", i)
	}
}

func copyAll(t *T, src, dst, n int) {
	t.Helper()
	in, out := int64(0), int64(0)
	for left := n; left > 0; {
		k, err := unix.CopyFileRange(src, &in, dst, &out, left, 0)
		if !wantErr(t, "copy_file_range", err, 0) || k == 0 {
			return
		}
		left -= k
	}
}

func splices(t *T, d string) {
	data := pattern(300_000)
	must(t, os.WriteFile(d+"/src", data, 0o644))
	src, dst := open(t, d+"/src", unix.O_RDONLY), open(t, d+"/sent", unix.O_CREAT|unix.O_RDWR)
	off := int64(0)
	for off < int64(len(data)) {
		n, err := unix.Sendfile(dst, src, &off, len(data))
		if !wantErr(t, "sendfile", err, 0) || n == 0 {
			break
		}
	}
	sameFile(t, d+"/sent", data, "sendfile")
	var pipe [2]int
	must(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	out := open(t, d+"/spliced", unix.O_CREAT|unix.O_RDWR)
	from, to := int64(0), int64(0)
	for from < int64(len(data)) {
		n, err := unix.Splice(src, &from, pipe[1], nil, 30_000, 0)
		if !wantErr(t, "splice from the file", err, 0) || n == 0 {
			return
		}
		for n > 0 {
			k, err := unix.Splice(pipe[0], nil, out, &to, int(n), 0)
			if !wantErr(t, "splice to the file", err, 0) || k == 0 {
				return
			}
			n -= k
		}
	}
	sameFile(t, d+"/spliced", data, "splice")
}

func vectors(t *T, d string) {
	fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
	var parts [][]byte
	for i := range 300 {
		parts = append(parts, pattern(int64(i*7%50)))
	}
	want := bytes.Join(parts, nil)
	n, err := unix.Pwritev(fd, parts, 5000)
	check(t, err == nil && n == len(want), "pwritev: %d, %v; want %d", n, err, len(want))
	back := [][]byte{make([]byte, 5000), make([]byte, 1), make([]byte, len(want))}
	n, err = unix.Preadv(fd, back, 0)
	check(t, err == nil && n == 5000+len(want) && bytes.Equal(append(back[1], back[2][:len(want)-1]...), want), "preadv: %d, %v", n, err)
	n, err = unix.Pwritev2(fd, [][]byte{[]byte("end")}, 0, unix.RWF_APPEND)
	check(t, err == nil && n == 3, "RWF_APPEND: %d, %v", n, err)
	check(t, string(pread(t, fd, 10, int64(5000+len(want)))) == "end", "RWF_APPEND wrote elsewhere")
	n, err = unix.Pwritev2(fd, [][]byte{[]byte("sync")}, 0, unix.RWF_DSYNC|unix.RWF_HIPRI)
	check(t, err == nil && n == 4, "RWF_DSYNC: %d, %v", n, err)
	_, err = unix.Pwritev2(fd, [][]byte{[]byte("x")}, 0, 1<<30)
	wantErr(t, "an unknown flag", err, unix.EOPNOTSUPP)
	_, err = unix.Pwritev(fd, [][]byte{[]byte("x")}, -1)
	wantErr(t, "pwritev at -1", err, unix.EINVAL)
	r := open(t, d+"/f", unix.O_RDONLY)
	_, err = unix.Pwrite(r, []byte("x"), 0)
	wantErr(t, "write to a reading descriptor", err, unix.EBADF)
	w := open(t, d+"/f", unix.O_WRONLY)
	_, err = unix.Pread(w, make([]byte, 1), 0)
	wantErr(t, "read of a writing descriptor", err, unix.EBADF)
}

// faults reports whether fn, which touches a mapping, gets SIGBUS.
func faults(fn func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	fn()
	return false
}

func mapFile(t *T, fd, size, flags int) []byte {
	t.Helper()
	m, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	must(t, err)
	t.Cleanup(func() { unix.Munmap(m) })
	return m
}

func mappedEnd(t *T, d string) {
	const page = 4096
	fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
	pwrite(t, fd, bytes.Repeat([]byte("a"), page+100), 0)
	m := mapFile(t, fd, 4*page, unix.MAP_SHARED)
	check(t, bytes.Equal(m[page+100:2*page], make([]byte, page-100)), "behind the end, the page is not zero")
	check(t, faults(func() { m[2*page]++ }), "the page behind the end is no fault")
	m[page+200] = 'x' // goes nowhere
	must(t, unix.Msync(m[:2*page], unix.MS_SYNC))
	check(t, lstat(t, d+"/f").Size == page+100, "a store behind the end made the file longer")
	must(t, unix.Ftruncate(fd, 3*page))
	check(t, !faults(func() { m[2*page] = 'c' }), "the page is a fault after the file grew")
	got := pread(t, fd, 3*page, 0)
	check(t, got[2*page] == 'c', "a store to the new page is not read")
	must(t, unix.Ftruncate(fd, page))
	check(t, faults(func() { m[2*page]++ }), "what was cut off is no fault")
	check(t, faults(func() { m[page]++ }), "the page behind the new end is no fault")
	must(t, unix.Ftruncate(fd, 3*page))
	check(t, !faults(func() {
		check(t, m[page] == 0 && m[2*page] == 0, "what was cut off comes back")
	}), "a fault after the file grew again")
	// Cut within a page and grown, it reads as zeros, mapped or not.
	m[10], m[3000] = 'k', 'g'
	must(t, unix.Ftruncate(fd, 100))
	must(t, unix.Ftruncate(fd, page))
	check(t, m[10] == 'k' && m[3000] == 0 && pread(t, fd, page, 0)[3000] == 0, "the cut part of a page comes back")
	must(t, unix.Close(open2(t, d+"/f"))) // a close of another descriptor leaves the mapping
	m[20] = 'm'
	must(t, unix.Msync(m[:page], unix.MS_SYNC))
	check(t, pread(t, fd, 1, 20)[0] == 'm', "msync after a close elsewhere")
	// A mapping of a removed file works until it goes.
	must(t, unix.Unlink(d+"/f"))
	m[30] = 'r'
	check(t, pread(t, fd, 1, 30)[0] == 'r', "a store to a removed file")
	_, err := unix.Mmap(open(t, d, unix.O_RDONLY|unix.O_DIRECTORY), 0, page, unix.PROT_READ, unix.MAP_SHARED)
	wantErr(t, "mmap of a directory", err, unix.ENODEV)
	touch(t, d+"/r", 0o644)
	_, err = unix.Mmap(open(t, d+"/r", unix.O_RDONLY), 0, page, unix.PROT_WRITE, unix.MAP_SHARED)
	wantErr(t, "mmap to write of a reading descriptor", err, unix.EACCES)
	_, err = unix.Mmap(open(t, d+"/r", unix.O_WRONLY), 0, page, unix.PROT_READ, unix.MAP_PRIVATE)
	wantErr(t, "mmap of a writing descriptor", err, unix.EACCES)
}

func open2(t *T, p string) int {
	t.Helper()
	fd, err := unix.Open(p, unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	return fd
}

func mappedCoherence(t *T, d string) {
	const size = 64 << 10
	fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
	must(t, unix.Ftruncate(fd, size))
	shared, again := mapFile(t, fd, size, unix.MAP_SHARED), mapFile(t, open(t, d+"/f", unix.O_RDWR), size, unix.MAP_SHARED)
	private := mapFile(t, fd, size, unix.MAP_PRIVATE)
	private[0] = 'p' // a page of its own from here on
	changes := []struct {
		name string
		call func(off int64, b []byte) error
	}{
		{"pwrite", func(off int64, b []byte) error { _, err := unix.Pwrite(fd, b, off); return err }},
		{"a store", func(off int64, b []byte) error { copy(again[off:], b); return nil }},
		{"copy_file_range", func(off int64, b []byte) error {
			must(t, os.WriteFile(d+"/from", b, 0o644))
			_, err := unix.CopyFileRange(open(t, d+"/from", unix.O_RDONLY), nil, fd, &off, len(b), 0)
			return err
		}},
		{"an append elsewhere, and a store", func(off int64, b []byte) error {
			a := open(t, d+"/f", unix.O_WRONLY|unix.O_APPEND)
			if _, err := unix.Write(a, b); err != nil {
				return err
			}
			copy(shared[off:], b)
			return nil
		}},
	}
	if t.has(Fallocate) {
		changes = append(changes, struct {
			name string
			call func(off int64, b []byte) error
		}{"punch hole", func(off int64, b []byte) error {
			clear(b)
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, int64(len(b)))
		}})
	}
	for round, off := range []int64{0, 100, 4090, 8192, 30_000, size - 5000} {
		for i, c := range changes {
			b := bytes.Repeat([]byte{byte('A' + i + round)}, 5000)
			wantErr(t, c.name, c.call(off, b), 0)
			check(t, bytes.Equal(shared[off:off+5000], b), "%s at %d is not seen by a mapping", c.name, off)
			check(t, bytes.Equal(again[off:off+5000], b), "%s at %d is not seen by another mapping", c.name, off)
			check(t, bytes.Equal(pread(t, fd, 5000, off), b), "%s at %d is not read", c.name, off)
			check(t, private[0] == 'p', "%s at %d changed a private page", c.name, off)
		}
	}
	check(t, pread(t, fd, 1, 0)[0] != 'p', "a private store is read")
}

// mappedBuffer reads and writes a file by way of a buffer that is itself a
// mapping of that file: the page fault comes in the middle of the call.
func mappedBuffer(t *T, d string) {
	const page = 4096
	data := pattern(4 * page)
	must(t, os.WriteFile(d+"/f", data, 0o644))
	fd := open(t, d+"/f", unix.O_RDWR)
	m := mapFile(t, fd, 4*page, unix.MAP_SHARED)
	must(t, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
	n, err := unix.Pwrite(fd, m[:page], 2*page) // from page 0 to page 2
	check(t, err == nil && n == page, "write from a mapping: %d, %v", n, err)
	copy(data[2*page:], data[:page])
	n, err = unix.Pread(fd, m[3*page:4*page], page) // page 1 into page 3
	check(t, err == nil && n == page, "read into a mapping: %d, %v", n, err)
	copy(data[3*page:], data[page:2*page])
	n, err = unix.Pwrite(fd, m[:page], 0) // onto itself
	check(t, err == nil && n == page, "write of a page onto itself: %d, %v", n, err)
	must(t, unix.Msync(m, unix.MS_SYNC))
	sameFile(t, d+"/f", data, "copies through mappings")
}

func directCoherence(t *T, d string) {
	if !t.has(Direct) {
		t.Skip("no O_DIRECT")
	}
	const page, pages = 4096, 16
	fd, dio := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR), open(t, d+"/f", unix.O_RDWR|unix.O_DIRECT)
	model := make([]byte, pages*page)
	pwrite(t, fd, model, 0)
	m := mapFile(t, fd, pages*page, unix.MAP_SHARED)
	buf, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, err)
	defer unix.Munmap(buf)
	for i := range 3 * pages {
		off := i * 5 % (pages - 1) * page
		c := byte(1 + i)
		for j := range buf {
			buf[j] = c
		}
		switch i % 3 {
		case 0:
			pwrite(t, dio, buf, int64(off))
		case 1:
			pwrite(t, fd, buf, int64(off))
		case 2:
			copy(m[off:], buf)
		}
		copy(model[off:], buf)
		clear(buf)
		n, err := unix.Pread(dio, buf, int64(off))
		check(t, err == nil && n == 2*page && bytes.Equal(buf, model[off:off+2*page]), "change %d is not read directly: %d, %v", i, n, err)
		check(t, bytes.Equal(pread(t, fd, 2*page, int64(off)), model[off:off+2*page]), "change %d is not read", i)
		check(t, bytes.Equal(m[off:off+2*page], model[off:off+2*page]), "change %d is not mapped", i)
	}
	for i := range buf {
		buf[i] = 'e'
	}
	pwrite(t, dio, buf[:page], pages*page) // makes the file longer
	check(t, lstat(t, d+"/f").Size == (pages+1)*page, "a direct write behind the end: size %d", lstat(t, d+"/f").Size)
	n, err := unix.Pread(dio, buf, (pages+1)*page)
	check(t, err == nil && n == 0, "a direct read at the end: %d, %v", n, err)
	must(t, unix.Ftruncate(fd, 100))
	n, err = unix.Pread(dio, buf[:page], 0)
	check(t, err == nil && n == 100, "a direct read across the end: %d, %v", n, err)
}

func dataAndHoles(t *T, d string) {
	fd := open(t, d+"/f", unix.O_CREAT|unix.O_RDWR)
	seek := func(off int64, whence int) (int64, error) { return unix.Seek(fd, off, whence) }
	for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
		_, err := seek(0, whence)
		wantErr(t, fmt.Sprintf("lseek(0, %d) of an empty file", whence), err, unix.ENXIO)
		_, err = seek(-1, whence)
		wantErr(t, fmt.Sprintf("lseek(-1, %d)", whence), err, unix.ENXIO)
	}
	_, err := seek(0, 5)
	wantErr(t, "lseek with a bad whence", err, unix.EINVAL)
	const mib = 1 << 20
	for i := range int64(5) { // data, hole, data, ...
		pwrite(t, fd, pattern(mib), 2*i*mib)
	}
	must(t, unix.Ftruncate(fd, 12*mib))
	for _, synced := range []bool{false, true} {
		for off := int64(0); off < 12*mib; off += mib / 2 {
			inData := off/mib%2 == 0 && off < 9*mib
			data, err := seek(off, unix.SEEK_DATA)
			switch next := (off/mib + 1) / 2 * 2 * mib; {
			case inData:
				check(t, err == nil && data == off, "synced %v: SEEK_DATA(%d) = %d, %v", synced, off, data, err)
			case off >= 9*mib:
				check(t, errors.Is(err, unix.ENXIO) || !t.has(Holes) && err == nil, "synced %v: SEEK_DATA(%d) = %d, %v; want ENXIO", synced, off, data, err)
			default:
				check(t, err == nil && data >= off && data <= next, "synced %v: SEEK_DATA(%d) = %d, %v; want up to %d", synced, off, data, err, next)
			}
			hole, err := seek(off, unix.SEEK_HOLE)
			end := min((off/mib/2*2+1)*mib, 12*mib)
			if !inData {
				end = off
			}
			check(t, err == nil && hole >= end, "synced %v: SEEK_HOLE(%d) = %d, %v; a hole in data", synced, off, hole, err)
			check(t, hole == end || !t.has(Holes) || !synced, "synced %v: SEEK_HOLE(%d) = %d, want %d", synced, off, hole, end)
		}
		must(t, unix.Fsync(fd))
	}
	off, err := seek(12*mib-1, unix.SEEK_HOLE)
	check(t, err == nil && (off == 12*mib-1 || !t.has(Holes) && off == 12*mib), "SEEK_HOLE at the last byte: %d, %v", off, err)
	off, err = seek(-10, unix.SEEK_END)
	check(t, err == nil && off == 12*mib-10, "SEEK_END: %d, %v", off, err)
	off, err = seek(1<<40, unix.SEEK_SET)
	check(t, err == nil && off == 1<<40, "a seek behind the end: %d, %v", off, err)
	n, err := unix.Read(fd, make([]byte, 1))
	check(t, err == nil && n == 0, "a read there: %d, %v", n, err)
}

// fileSizeLimit sets RLIMIT_FSIZE, in a shell: a limit is the process's.
func fileSizeLimit(t *T, d string) {
	for _, c := range []struct{ name, script, says string }{
		{"write", `trap "" XFSZ; ulimit -f 8; dd if=/dev/zero of=f bs=1k count=10 conv=notrunc`, "File too large"},
		{"append", `trap "" XFSZ; ulimit -f 8; for i in 0 1 2 3 4 5; do dd if=/dev/zero of=f bs=1k count=1 oflag=append conv=notrunc || exit 1; done`, "File too large"},
		{"truncate", `trap "" XFSZ; ulimit -f 8; truncate -s 5k f`, "File too large"},
		{"the signal", `ulimit -f 8; dd if=/dev/zero of=f bs=1k count=10 conv=notrunc; echo "ended with $?" >&2; exit 1`, "ended with 153"},
	} {
		dir := d + "/" + strings.ReplaceAll(c.name, " ", "-")
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.WriteFile(dir+"/f", []byte("start"), 0o644))
		cmd := exec.Command("sh", "-c", c.script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		check(t, err != nil && strings.Contains(string(out), c.says), "%s: %v, %s; want %q", c.name, err, out, c.says)
		check(t, lstat(t, dir+"/f").Size <= 4096, "%s: size %d beyond the limit", c.name, lstat(t, dir+"/f").Size)
	}
}
