package integration

import (
	"os"
	"syscall"
)

// The calls below do what the system call does: os.Remove and os.Rename try
// more than one thing.

func unlink(p string) error { return wrapErr("unlink", p, syscall.Unlink(p)) }
func rmdir(p string) error  { return wrapErr("rmdir", p, syscall.Rmdir(p)) }
func rename(from, to string) error {
	return wrapErr("rename", from, syscall.Rename(from, to))
}

func wrapErr(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: p, Err: err}
}
