package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"ogw/httpapi/admin"
)

// privateMode is that of the files that this package makes in the data folder.
const privateMode = 0o600

// privateNames are the files that this package makes there; the engine sees to
// its own.
var privateNames = []string{credentialsName, mountRecord, mountLog, mountLog + ".1", admin.SocketName}

// openPrivate opens a file of the data folder for writing; no symbolic link,
// and whatever the umask and the mode that it had, it is the owner's alone.
func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, privateMode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(privateMode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// replacedSuffix names a file that is to take the place of another.
const replacedSuffix = ".new"

// replacePrivate replaces a file, all of it or not at all; durably, if asked.
func replacePrivate(path string, data []byte, durable bool) error {
	temp := path + replacedSuffix
	_ = os.Remove(temp) // of a process that died in the middle
	f, err := openPrivate(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
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
	return syncDir(filepath.Dir(path))
}
