// Package privatefile writes the files of a data folder that are their owner's
// alone.
package privatefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mode is that of all.
const mode = 0o600

// Open opens a file for writing; no symbolic link, and whatever the umask and the
// mode that it had, it is the owner's alone.
func Open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// NewSuffix names a file that is to take the place of another.
const NewSuffix = ".new"

// Replace replaces a file, all of it or not at all; durably, if asked.
func Replace(path string, data []byte, durable bool) error {
	temp := path + NewSuffix
	_ = os.Remove(temp) // of a process that died in the middle
	f, err := Open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	if !durable {
		return nil
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
