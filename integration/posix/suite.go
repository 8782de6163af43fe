// Package posix is a conformance suite for file systems: what POSIX and the
// man pages of Linux say of each system call, case by case. It runs on any
// directory: on a local file system, where it shows that the suite itself is
// right, on a FUSE mount, and on an NFS mount.
//
// Most checks come from tables that are multiplied: kinds of files by callers
// by modes by calls. Each check counts for itself; a test is one table.
//
// The suite must run as root: it makes devices, and becomes other users.
package posix

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// group is a part of the suite that may need a feature.
type group struct {
	name  string
	needs []Feature
	cases []namedCase
}

// groups is the whole suite.
func groups() []group {
	return []group{
		{"open", nil, openCases}, {"tmpfile", []Feature{Tmpfile}, tmpfileCases},
		{"names", nil, nameCases}, {"bytes", nil, byteCases},
		{"rename", nil, renameCases}, {"renameflags", []Feature{Flags}, renameFlagCases}, {"renamekinds", nil, renameKindCases},
		{"paths", nil, pathCases}, {"limits", nil, limitCases}, {"parents", nil, parentCases},
		{"modes", nil, modeCases}, {"create", nil, createCases}, {"kinds", nil, kindCases},
		{"attributes", nil, attrCases}, {"statx", nil, statxCases}, {"privileges", nil, privilegeCases}, {"chmod", nil, chmodCases}, {"chown", nil, chownCases},
		{"permissions", nil, permCases}, {"sticky", nil, stickyCases}, {"times", nil, timeCases},
		{"data", nil, dataCases}, {"contents", nil, contentCases}, {"aio", []Feature{Direct}, aioCases}, {"sizes", nil, sizeCases}, {"fallocate", []Feature{Fallocate}, fallocateCases},
		{"exec", nil, execCases}, {"locks", nil, lockCases}, {"lockranges", nil, lockRangeCases},
		{"directories", nil, dirCases}, {"kept", []Feature{Kept}, keptCases},
		{"xattrs", []Feature{Xattr}, xattrCases}, {"xattrspaces", []Feature{Xattr}, xattrSpaceCases},
		{"atime", []Feature{Atime}, accessTimeCases}, {"fileflags", []Feature{Chattr}, fileFlagCases},
		{"acl", []Feature{Xattr, ACL}, aclCases}, {"aclrights", []Feature{Xattr, ACL}, aclRightCases},
	}
}

// Run runs the suite on a directory.
func Run(t *testing.T, c Config) {
	if os.Geteuid() != 0 {
		t.Skip("the suite must run as root: it becomes other users")
	}
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	r := newRun(c)
	t.Run("cases", func(t *testing.T) { // returns when all parallel ones did
		for _, g := range groups() {
			if lacking := r.missing(g.needs); lacking != "" {
				t.Logf("%s: left out, the file system has no %s", g.name, lacking)
				continue
			}
			for i, c := range g.cases {
				d := filepath.Join(r.Dir, fmt.Sprintf("%s-%d", g.name, i))
				t.Run(g.name+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					r.one(t, d, c.run)
				})
			}
		}
	})
	t.Logf("%d checks, %d failed", r.checks.Load(), r.failed.Load())
	for i, e := range r.Expected {
		t.Logf("%d checks, failed as expected: %s", r.met[i].Load(), e)
		if r.met[i].Load() == 0 {
			t.Errorf("nothing failed as %s", e)
		}
	}
	if r.checks.Load() < minChecks {
		t.Errorf("only %d checks were made: something was left out", r.checks.Load())
	}
}

// minChecks is what even a file system without any feature must see.
const minChecks = 5000

func (r *run) one(t *testing.T, d string, fn func(t *T, d string)) {
	c := &T{T: t, run: r, callers: map[string]*caller{}}
	defer c.stopCallers()
	must(c, os.Mkdir(d, 0o777))
	must(c, os.Chmod(d, 0o777))
	defer os.RemoveAll(d)
	fn(c, d)
}
