package seal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLoad(t *testing.T) {
	root := t.TempDir()
	data, safe, open := filepath.Join(root, "data"), filepath.Join(root, "safe"), filepath.Join(root, "open")
	for _, dir := range []string{data, filepath.Join(data, "meta"), safe, open} {
		must(t, os.Mkdir(dir, 0o700))
	}
	must(t, os.Chmod(open, 0o777))
	file := func(dir, name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(keyText(1)+"\n"), mode))
		must(t, os.Chmod(path, mode))
		return path
	}
	link := func(target, dir, name string) string {
		path := filepath.Join(dir, name)
		must(t, os.Symlink(target, path))
		return path
	}
	good := file(safe, "key", 0o600)
	inside := file(data, "key", 0o600)
	must(t, unix.Mkfifo(filepath.Join(safe, "pipe"), 0o600))
	must(t, os.WriteFile(filepath.Join(safe, "garbage"), []byte("hunter2"), 0o600))
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"good":                        {good, nil},
		"read-only":                   {file(safe, "ro", 0o400), nil},
		"linked":                      {link("key", safe, "link"), nil},
		"linked folder":               {filepath.Join(link(safe, root, "dirlink"), "key"), nil},
		"readable by others":          {file(safe, "others", 0o604), ErrUnsafe},
		"readable by the group":       {file(safe, "group", 0o640), ErrUnsafe},
		"writable by others":          {file(safe, "write", 0o602), ErrUnsafe},
		"in the data folder":          {inside, ErrUnsafe},
		"deep in the data folder":     {file(filepath.Join(data, "meta"), "key", 0o600), ErrUnsafe},
		"in it, by a link":            {link(inside, safe, "in"), ErrUnsafe},
		"in it, by a linked folder":   {filepath.Join(link(data, safe, "datalink"), "key"), ErrUnsafe},
		"in it, by dots":              {filepath.Join(safe, "..") + "/data/../data/key", ErrUnsafe},
		"a folder of others":          {file(open, "key", 0o600), ErrUnsafe},
		"a link that others may swap": {link(good, open, "link"), ErrUnsafe},
		"a link to such a link":       {link(filepath.Join(open, "link"), safe, "chain"), ErrUnsafe},
		"a loop":                      {link("loop", safe, "loop"), ErrUnsafe},
		"a pipe":                      {filepath.Join(safe, "pipe"), ErrUnsafe},
		"a folder":                    {safe, ErrUnsafe},
		"missing":                     {filepath.Join(safe, "missing"), os.ErrNotExist},
		"garbage":                     {filepath.Join(safe, "garbage"), ErrBadKeys},
	} {
		k, err := Load(c.path, data)
		if !errors.Is(err, c.want) || (err == nil) != (k != nil) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// A data folder that is yet to be made.
	if _, err := Load(good, filepath.Join(root, "new")); err != nil {
		t.Error(err)
	}
	if _, err := Load(good, safe); !errors.Is(err, ErrUnsafe) {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		theirs := file(safe, "theirs", 0o600)
		must(t, os.Chown(theirs, 12345, 0))
		if _, err := Load(theirs, data); !errors.Is(err, ErrUnsafe) {
			t.Error("another user's file:", err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
