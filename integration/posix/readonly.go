package posix

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// RunReadOnly checks that a read-only mount refuses every change with EROFS,
// and nothing else. c.Dir is a directory that can be written; readOnly shows
// the same through the read-only mount.
func RunReadOnly(t *testing.T, c Config, readOnly string) {
	if os.Geteuid() != 0 {
		t.Skip("the suite must run as root")
	}
	r := newRun(c)
	r.one(t, c.Dir+"/readonly", func(t *T, d string) {
		view := readOnly + strings.TrimPrefix(d, c.Dir)
		fresh(t, d)
		for _, k := range kinds {
			makeKind(t, k, d+"/"+k, 0o777)
		}
		for _, o := range t.pathOps() {
			as(t, 0, 0, nil, func() { readOnlyOp(t, o, d, view) })
		}
		fd := open(t, view+"/"+reg, unix.O_RDONLY)
		wantErr(t, "fchmod", unix.Fchmod(fd, 0o600), unix.EROFS)
		wantErr(t, "futimens", futimens(fd, unix.Timespec{}, unix.Timespec{}), unix.EROFS)
		if t.has(Xattr) {
			wantErr(t, "fsetxattr", unix.Fsetxattr(fd, "user.x", nil, 0), unix.EROFS)
		}
		wantErr(t, "access(W_OK)", unix.Access(view+"/"+reg, unix.W_OK), unix.EROFS)
		wantErr(t, "access(R_OK)", unix.Access(view+"/"+reg, unix.R_OK), 0)
		for name, err := range map[string]error{ // which is there already
			"mkdir": unix.Mkdir(view+"/"+reg, 0o755), "mkfifo": unix.Mkfifo(view+"/"+reg, 0o644),
			"mknod": unix.Mknod(view+"/"+reg, unix.S_IFREG|0o644, 0), "symlink": unix.Symlink("x", view+"/"+reg),
			"link": unix.Link(view+"/"+reg, view+"/"+fifo), "open(O_EXCL)": openErr(view+"/"+reg, unix.O_CREAT|unix.O_EXCL, 0o644),
		} {
			wantErr(t, name+" of what is there", err, unix.EEXIST)
		}
		wantErr(t, "open(O_CREAT) of what is there", openErr(view+"/"+reg, unix.O_CREAT|unix.O_RDONLY, 0o644), 0)
		// Data goes through special files all the same.
		wantErr(t, "open of a fifo", openErr(view+"/"+fifo, unix.O_RDWR, 0), 0)
	})
}

func readOnlyOp(t *T, o pathOp, d, view string) {
	if o.makes {
		wantErr(t, o.name+" of nothing", o.call(view, view+"/none"), unix.EROFS)
		return
	}
	for _, k := range kinds {
		no, ok := o.onKind(k)
		if !ok || no != 0 {
			continue
		}
		if o.changes {
			no = unix.EROFS
		}
		wantErr(t, o.name+" of a "+k, o.call(view, view+"/"+k), no)
		check(t, inoOf(d+"/"+k) != 0, "%s removed the %s", o.name, k)
	}
}
