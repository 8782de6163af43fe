package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxFileBytes is more than maxKeys keys with comments take.
const maxFileBytes = 64 << 10

// ErrUnsafe means that a key file could be read or replaced by others, or lies
// in the store that it is to protect.
var ErrUnsafe = errors.New("not a safe place for keys")

// Load reads the keys of a store, whose data folder is dir, from a file. It
// must be a plain file of this user or root that nobody else can read, below
// folders (and through links, if any) that nobody else can change, and outside
// of dir: a backup of the store must not hold it. ErrUnsafe, ErrBadKeys.
func Load(path, dir string) (*Keyring, error) {
	real, err := trusted(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if err := outside(real, dir); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	text, err := read(real)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	k, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return k, nil
}

// maxLinks is how many links a path may have in it, as for the kernel.
const maxLinks = 40

// trusted follows path link by link, and returns where it leads if nobody but
// root and this user could lead it elsewhere.
func trusted(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		target, err := firstLink(path)
		if err != nil || target == "" {
			return path, err
		}
		path = target
	}
	return "", fmt.Errorf("%s: %w: too many links", path, ErrUnsafe)
}

// firstLink checks each component of path, and returns path with the first
// link in it replaced by its target, "" if there is none.
func firstLink(path string) (string, error) {
	done := "/"
	rest := path[1:]
	for {
		var st unix.Stat_t
		if err := unix.Lstat(done, &st); err != nil {
			return "", &fs.PathError{Op: "lstat", Path: done, Err: err}
		}
		if !ours(st.Uid) {
			return "", fmt.Errorf("%s belongs to uid %d: %w", done, st.Uid, ErrUnsafe)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			target, err := os.Readlink(done)
			if err != nil {
				return "", err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(done), target)
			}
			return filepath.Join(target, rest), nil
		case unix.S_IFDIR:
			// In a sticky folder (/tmp) others can add files, not replace ours.
			if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
				return "", fmt.Errorf("others may write to folder %s: %w", done, ErrUnsafe)
			}
		}
		if rest == "" {
			return "", nil
		}
		var next string
		next, rest = cut(rest)
		done = filepath.Join(done, next)
	}
}

func cut(path string) (first, rest string) {
	for i := range path {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

func ours(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// outside refuses a file within dir, by whatever name.
func outside(path, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	folder, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		folder, err = nil, nil // it is made later; names are all there is
	}
	if err != nil {
		return err
	}
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		inside := at == abs
		if st, err := os.Stat(at); err != nil {
			return err
		} else if folder != nil {
			inside = inside || os.SameFile(st, folder)
		}
		if inside {
			return fmt.Errorf("%s lies inside of the data folder, and would be in every copy of it: %w", path, ErrUnsafe)
		}
		if at == "/" {
			return nil
		}
	}
}

// read reads a small plain file that is nobody else's to read or write.
func read(path string) (text string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", &fs.PathError{Op: "fstat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", fmt.Errorf("%s is not a plain file: %w", path, ErrUnsafe)
	case !ours(st.Uid):
		return "", fmt.Errorf("%s belongs to uid %d: %w", path, st.Uid, ErrUnsafe)
	case st.Mode&0o077 != 0:
		return "", fmt.Errorf("%s has mode %04o, others may read it (chmod 600 helps): %w", path, st.Mode&0o7777, ErrUnsafe)
	case st.Size > maxFileBytes:
		return "", fmt.Errorf("%s has %d bytes: %w", path, st.Size, ErrBadKeys)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes))
	return string(b), err
}
