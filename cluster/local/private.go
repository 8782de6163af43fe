package local

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/local/internal/ioerr"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// othersAll are the bits that files of the store have not.
const othersAll = 0o077

// Bits of the data folder's own mode, which is the operator's.
const (
	othersWrite = 0o022
	othersEnter = 0o055
)

// checkFolder refuses a data folder in which others may replace files, and
// warns of one that others may enter.
func checkFolder(dir string, log *slog.Logger) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return ioerr.Map(&os.PathError{Op: "stat", Path: dir, Err: err})
	}
	mode := st.Mode & 0o7777
	if mode&othersWrite != 0 {
		return fmt.Errorf("%w: others may write to %s (mode %04o), and so put files in place of the store's; "+
			"run: chmod go-w %[2]s (or name a folder below it that is not there yet: it is made private)", cluster.ErrExposed, dir, mode)
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		log.Warn("the data folder belongs to another user, who can replace its files", "dir", dir, "uid", st.Uid)
	}
	if mode&othersEnter != 0 {
		log.Warn("others may enter the data folder: its files are private, their names and sizes are not (chmod go-rx closes it)",
			"dir", dir, "mode", fmt.Sprintf("%04o", mode))
	}
	return nil
}

// MakePrivate takes all rights of others from the named files and folders of
// dir, where they are there: an earlier version made them, or a copy brought
// them along. It refuses symbolic links with cluster.ErrExposed.
func MakePrivate(dir string, log *slog.Logger, names ...string) error {
	d, err := os.Open(dir)
	if err != nil {
		return ioerr.Map(err)
	}
	defer d.Close()
	for _, name := range names {
		err := makePrivate(int(d.Fd()), name)
		switch path := filepath.Join(dir, name); {
		case err == nil, errors.Is(err, os.ErrNotExist):
		case errors.Is(err, unix.ELOOP):
			return fmt.Errorf("%w: %s is a symbolic link; the data folder as a whole may be one, what is in it may not", cluster.ErrExposed, path)
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EOPNOTSUPP):
			// The files of another user, or a file system without modes.
			log.Warn("cannot take the rights of others from a file of the store", "path", path, "err", err)
		case ioerr.Unreadable(err): // who needs what is in it says so
			log.Error("the medium cannot read a file of the store", "path", path, "err", err)
		default:
			return ioerr.Map(&os.PathError{Op: "chmod", Path: path, Err: err})
		}
	}
	return nil
}

// makePrivate changes the mode of what it looked at, and of nothing else: by
// descriptor. ELOOP: it is a symbolic link.
func makePrivate(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	if st.Mode&othersAll == 0 {
		return nil
	}
	return chmodPath(fd, st.Mode&0o7700)
}

// procFDs holds a name for each descriptor of the process, which leads to
// nothing else.
const procFDs = "/proc/self/fd"

// errNoChmod means that a file that others may use stays so.
var errNoChmod = errors.New("the kernel has no fchmodat2 (Linux 6.6) and /proc is not mounted: mount it, or run chmod go= on this file")

// chmodPath changes the mode behind a descriptor of a path (O_PATH), which
// opens sockets, too, and ends no lock. fchmod does not take one; where the
// kernel has no fchmodat2, or a filter of system calls refuses it, the name of
// the descriptor in /proc must do.
func chmodPath(fd int, mode uint32) error {
	if unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH) == nil {
		return nil
	}
	return chmodByName(fd, mode, procFDs)
}

func chmodByName(fd int, mode uint32, names string) error {
	err := unix.Chmod(fmt.Sprintf("%s/%d", names, fd), mode)
	if errors.Is(err, unix.ENOENT) {
		return errNoChmod
	}
	return err
}

// makeStorePrivate does so for all that the engine makes, but for the files of
// large blobs: they were always made private and lie in private folders, and a
// look at each would make the start of a large store slow.
func makeStorePrivate(dir string, log *slog.Logger) error {
	top := []string{record.FormatFile, record.LockFile, record.MarkFile, record.ReserveFile, record.MetaDir, record.SegmentDir, record.BlobDir}
	if err := MakePrivate(dir, log, top...); err != nil {
		return err
	}
	for _, sub := range []string{record.MetaDir, record.SegmentDir, record.BlobDir} {
		sub = filepath.Join(dir, sub)
		entries, err := os.ReadDir(sub)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return ioerr.Map(err)
		}
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err := MakePrivate(sub, log, names...); err != nil {
			return err
		}
	}
	return nil
}
