package fusemount

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Who changes another's file takes setuid and setgid off it for everybody at
// once: the kernel must not run it with them for as long as it keeps attributes,
// although it asks for the mode alone, which it did not change itself.
func TestPrivilegesEndAtOnce(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		_, dir := mountBucket(t, over)
		open := func(name string, flags int) (int, error) { return unix.Open(name, flags|unix.O_CLOEXEC, 0) }
		for name, change := range map[string]func(name string, fd int) error{
			"write":  func(_ string, fd int) error { _, err := unix.Write(fd, []byte("x")); return err },
			"pwrite": func(_ string, fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 3); return err },
			"append": func(name string, _ int) error {
				fd, err := open(name, unix.O_WRONLY|unix.O_APPEND)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				_, err = unix.Write(fd, []byte("x"))
				return err
			},
			"O_TRUNC": func(name string, _ int) error {
				fd, err := open(name, unix.O_WRONLY|unix.O_TRUNC)
				if err != nil {
					return err
				}
				return unix.Close(fd)
			},
			"truncate":  func(name string, _ int) error { return unix.Truncate(name, 1) },
			"fallocate": func(_ string, fd int) error { return unix.Fallocate(fd, 0, 0, 100) },
			"punch hole": func(_ string, fd int) error {
				return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4)
			},
			"copy_file_range": func(_ string, fd int) error {
				from, to := int64(4), int64(0)
				_, err := unix.CopyFileRange(fd, &from, fd, &to, 2, 0)
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				for mode, want := range map[uint32]uint16{0o4777: 0o777, 0o2777: 0o777, 0o6777: 0o777, 0o2766: 0o2766} {
					file := filepath.Join(dir, "file")
					must(t, os.WriteFile(file, []byte("0123456789"), 0o777))
					must(t, unix.Chmod(file, mode))
					as(t, 1001, func() {
						fd, err := open(file, unix.O_RDWR)
						must(t, err)
						defer unix.Close(fd)
						must(t, change(file, fd))
						var st unix.Statx_t
						must(t, unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_MODE, &st))
						if got := st.Mode & 0o7777; got != want {
							t.Errorf("mode %o becomes %o, want %o", mode, got, want)
						}
					})
					must(t, os.Remove(file))
				}
			})
		}
	})
}

// as runs fn on a thread with the file system rights of a user.
func as(t *testing.T, uid int, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsuid(uid))
	defer func() { must(t, unix.Setfsuid(0)) }()
	fn()
}

// asksBefore calls the test before attributes are set.
type asksBefore struct {
	attributes
	before func()
}

func (n asksBefore) SetAttr(ctx context.Context, c *vfs.Cred, ino vfs.Ino, a vfs.SetAttr) (vfs.Attr, error) {
	n.before()
	return n.attributes.SetAttr(ctx, c, ino, a)
}

// TestPrivilegesBesideChmod: a write takes setuid off the mode that the file has then, and takes
// no chmod back that another door acknowledged meanwhile; nor is one refused that appends to
// what only grows.
func TestPrivilegesBesideChmod(t *testing.T) {
	k := begin(t, "text")
	plain := k.rawFS.fs.attributes
	set := func(mode uint32) {
		t.Helper()
		_, err := plain.SetAttr(bg, vfs.Root, k.file, vfs.SetAttr{Mode: &mode})
		must(t, err)
	}
	change := map[string]func() fuse.Status{
		"write": func() fuse.Status {
			in := &fuse.WriteIn{InHeader: header(0, k.file), Fh: k.open(0, unix.O_WRONLY|unix.O_APPEND), WriteFlags: fuse.WRITE_KILL_SUIDGID, Flags: unix.O_APPEND}
			in.Uid = 1001
			_, st := k.Write(nil, in, []byte("x"))
			return st
		},
		"truncate": func() fuse.Status {
			in := &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: header(0, k.file), Valid: fuse.FATTR_SIZE | fuse.FATTR_KILL_SUIDGID, Size: 4}}
			in.Uid = 1001
			return k.SetAttr(nil, in, new(fuse.AttrOut))
		},
	}
	mode := func(what string, want uint32) {
		t.Helper()
		a, err := k.fs.GetAttr(bg, k.file)
		must(t, err)
		if got := a.Mode & vfs.ModePermMask; got != want {
			t.Errorf("%s: mode %o, want %o", what, got, want)
		}
	}
	for what, change := range change {
		for from, to := range map[uint32]uint32{0o4755: 0o600, 0o2755: 0o4700} {
			set(from)
			once := sync.OnceFunc(func() { set(to) })
			k.rawFS.fs.attributes = asksBefore{plain, once}
			if st := change(); !st.Ok() {
				t.Errorf("%s: %v", what, st)
			}
			k.rawFS.fs.attributes = plain
			mode(what, to&^(vfs.ModeSetUID|vfs.ModeSetGID))
		}
	}
	set(0o6766)
	must(t, k.fs.SetFlags(bg, vfs.Root, k.file, vfs.FlagAppend))
	if st := change["truncate"](); st != fuse.EPERM {
		t.Errorf("truncate what only grows: %v", st)
	}
	mode("a refused truncation", 0o6766)
	if st := change["write"](); !st.Ok() {
		t.Errorf("append to what only grows: %v", st)
	}
	mode("append", 0o2766) // by a member of the group, which may not execute the file
}

// TestPrivilegesOfLateMode: who writes while setuid is being set, and finds none, asks again before
// the next write.
func TestPrivilegesOfLateMode(t *testing.T) {
	k := begin(t, "text")
	fh := k.open(2, unix.O_RDWR)
	overwrite := func(unique uint64) {
		in := &fuse.WriteIn{InHeader: header(unique, k.file), Fh: fh, WriteFlags: fuse.WRITE_KILL_SUIDGID}
		in.Uid = 1001
		if _, st := k.Write(nil, in, []byte("x")); !st.Ok() {
			t.Fatal(st)
		}
	}
	plain := k.rawFS.fs.attributes
	k.rawFS.fs.attributes = asksBefore{plain, func() { overwrite(4) }}
	mode := uint32(0o4755)
	st := k.SetAttr(nil, &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: header(6, k.file), Valid: fuse.FATTR_MODE, Mode: mode}}, new(fuse.AttrOut))
	if !st.Ok() {
		t.Fatal(st)
	}
	k.rawFS.fs.attributes = plain
	if h := k.files.get(fh); h.plain.Load() == k.privs.now.Load()+1 {
		t.Error("the next write takes the file for one without setuid")
	}
}
