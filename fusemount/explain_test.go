package fusemount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The reason of a refused mount is the one that holds.
func TestWhyRefused(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "fuse.conf")
	if err := os.WriteFile(conf, []byte("#user_allow_other\nmount_max = 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(dir, "allowed.conf")
	if err := os.WriteFile(allowed, []byte("mount_max = 9\nuser_allow_other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sticky := filepath.Join(dir, "sticky")
	if err := os.Mkdir(sticky, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sticky, 0o700|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	other := Options{AllowOther: true}
	me := os.Getuid()
	cases := []struct {
		dir  string
		opt  Options
		conf string
		uid  int
		want string
	}{
		{dir, other, conf, me, "allow_other needs the line user_allow_other in " + conf},
		{dir, other, conf + ".none", me, "allow_other needs"},
		{dir, other, allowed, me, "in the log of the process"},
		{dir, Options{}, conf, me, "in the log of the process"},
		{sticky, Options{}, conf, me + 1, "sticky bit"},
		{sticky, Options{}, conf, me, "in the log of the process"},
		{filepath.Join(dir, "none"), Options{}, conf, me, "no such file"},
	}
	if me != 0 { // root may write anywhere
		cases = append(cases, cases[0])
		c := &cases[len(cases)-1]
		c.dir, c.opt, c.want = closed, Options{}, "may not write to the folder"
	}
	for _, c := range cases {
		if got := whyRefused(c.dir, c.opt, c.conf, c.uid); !strings.Contains(got, c.want) {
			t.Errorf("%s %+v: %q, want %q", c.dir, c.opt, got, c.want)
		}
	}
	err := explain(sticky, Options{}, errors.New("fusermount exited with code 256\n"))
	if !errors.Is(err, ErrNoRights) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "256") {
		t.Errorf("%q", err)
	}
}
