package vfs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ogw/cluster/mem"
)

// TestForgottenCred: who forgets to say who the caller is gets no right that modes do not
// give to others, not even to what nobody's uid owns.
func TestForgottenCred(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	dir := mustMkdir(t, fs, RootIno, "dir")
	for name, owner := range map[string]*Cred{"root": Root, "nobody": NewCred(NobodyUID, NobodyUID)} {
		_, f, _, err := fs.Create(bg, owner.Checked(), dir, name, CreateOptions{Mode: 0o600, Flags: OpenWrite})
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("secret"), 0)
		want(t, err, nil)
		want(t, f.Close(bg), nil)
	}
	for what, c := range map[string]*Cred{"nil": nil, "zero": {}, "umask alone": {Umask: 0o022}} {
		for _, name := range []string{"root", "nobody"} {
			refuses(t, fs, what+", file of "+name, c, dir, name)
		}
		if _, err := fs.Lookup(bg, c, dir, "root"); err != nil {
			t.Errorf("%s: what others may: %v", what, err)
		}
	}
	open := mustMkdir(t, fs, RootIno, "open")
	mode := uint32(0o777)
	_, err := fs.SetAttr(bg, Root, open, SetAttr{Mode: &mode})
	want(t, err, nil)
	if a, err := fs.Mkdir(bg, nil, open, "made", 0o755); err != nil || a.UID != NobodyUID || a.GID != NobodyUID {
		t.Errorf("where all may write: %+v %v", a, err)
	}
}

// refuses wants everything that c asks about a file of mode 0600 in a directory of
// mode 0755 to be refused.
func refuses(t *testing.T, fs *FS, what string, c *Cred, dir Ino, name string) {
	t.Helper()
	a, err := fs.Lookup(bg, Root, dir, name)
	want(t, err, nil)
	mode, uid, size := uint32(0o777), uint32(1000), int64(0)
	for act, do := range map[string]func() error{
		"read":      func() error { _, err := fs.Open(bg, c, a.Ino, OpenRead); return err },
		"write":     func() error { _, err := fs.Open(bg, c, a.Ino, OpenWrite); return err },
		"access":    func() error { return fs.Access(bg, c, a.Ino, AccessRead) },
		"chmod":     func() error { _, err := fs.SetAttr(bg, c, a.Ino, SetAttr{Mode: &mode}); return err },
		"chown":     func() error { _, err := fs.SetAttr(bg, c, a.Ino, SetAttr{UID: &uid}); return err },
		"truncate":  func() error { _, err := fs.SetAttr(bg, c, a.Ino, SetAttr{Size: &size}); return err },
		"utimes":    func() error { _, err := fs.SetAttr(bg, c, a.Ino, SetAttr{MtimeNow: true}); return err },
		"setxattr":  func() error { return fs.SetXattr(bg, c, a.Ino, Xattr{Name: "trusted.x", Value: []byte("x")}, 0) },
		"chattr":    func() error { return fs.SetFlags(bg, c, a.Ino, FlagNoDump) },
		"create":    func() error { _, _, _, err := fs.Create(bg, c, dir, "new", CreateOptions{Mode: 0o644}); return err },
		"temporary": func() error { _, _, err := fs.OpenTemp(bg, c, dir, 0o644, OpenWrite); return err },
		"mkdir":     func() error { _, err := fs.Mkdir(bg, c, dir, "new", 0o755); return err },
		"mknod": func() error {
			_, err := fs.Mknod(bg, c, dir, "new", NodeOptions{Mode: ModeChar | 0o666, Rdev: 1})
			return err
		},
		"symlink": func() error { _, err := fs.Symlink(bg, c, dir, "new", "target"); return err },
		"link":    func() error { _, err := fs.Link(bg, c, a.Ino, dir, "new"); return err },
		"rename":  func() error { return fs.Rename(bg, c, EntryName{dir, name}, EntryName{dir, "new"}, 0) },
		"unlink":  func() error { return fs.Unlink(bg, c, dir, name) },
		"rmdir":   func() error { return fs.Rmdir(bg, c, RootIno, "dir") },
	} {
		if err := do(); !isRefusal(err) {
			t.Errorf("%s: %s: %v", what, act, err)
		}
	}
}

// TestProgramOwns: what the program makes through object operations, without a
// subject, is the superuser's; what a subject makes is the subject's.
func TestProgramOwns(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	ctx := WithSubject(bg, &Subject{User: "a", UID: 1001, GID: 1002, Admin: true})
	for _, c := range []struct {
		ctx      context.Context
		key      string
		uid, gid uint32
	}{{bg, "program", 0, 0}, {ctx, "user", 1001, 1002}} {
		_, err := fs.PutObject(c.ctx, ObjectName{"bucket", c.key}, strings.NewReader("x"), PutOptions{Size: 1})
		want(t, err, nil)
		if a, err := fs.Resolve(bg, Root, "bucket/"+c.key, true); err != nil || a.UID != c.uid || a.GID != c.gid {
			t.Errorf("%s: %+v %v", c.key, a, err)
		}
		b, err := fs.CreateBucket(c.ctx, "of-"+c.key, nil)
		if err != nil || b.UID != c.uid || b.GID != c.gid {
			t.Errorf("bucket of %s: %+v %v", c.key, b, err)
		}
	}
}

// TestForgottenSubject: a door that has a context for a subject, and does not say
// which, asks as nobody.
func TestForgottenSubject(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	put(t, fs, "key", "x") // root's, as is the bucket
	for what, ctx := range map[string]context.Context{"nil": WithSubject(bg, nil), "zero": WithSubject(bg, &Subject{}), "unset": &SubjectContext{Context: bg}} {
		_, err := fs.GetObject(ctx, ObjectName{"bucket", "key"}, GetOptions{})
		wantErr(t, err, ErrAccess)
		_, err = fs.PutObject(ctx, ObjectName{"bucket", "key"}, strings.NewReader("x"), PutOptions{Size: 1})
		wantErr(t, err, ErrAccess)
		_, err = fs.DeleteObject(ctx, ObjectName{"bucket", "key"}, DeleteOptions{})
		wantErr(t, err, ErrAccess)
		if _, err = fs.CreateBucket(ctx, "other", nil); !errors.Is(err, ErrAccess) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func isRefusal(err error) bool { return errors.Is(err, ErrAccess) || errors.Is(err, ErrPerm) }
