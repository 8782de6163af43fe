package vfs

import (
	"strings"
	"testing"

	"ogw/cluster/mem"
)

// No way makes a directory at the top under a reserved name; files may have
// it, and so may directories below.
func TestReservedNames(t *testing.T) {
	ctx := bg
	fs := openTestWith(t, mem.New(mem.Options{}), Config{Reserved: []string{"s3.example.com"}})
	mustMkdir(t, fs, RootIno, "plain")
	mustMkdir(t, fs, RootIno, "other")
	for _, name := range []string{"s3.example.com", "b.s3.example.com", "a.b.s3.example.com"} {
		_, err := fs.CreateBucket(ctx, name, Root)
		want(t, err, ErrReservedName)
		_, err = fs.Mkdir(ctx, Root, RootIno, name, 0o755)
		want(t, err, ErrReservedName)
		want(t, fs.Rename(ctx, Root, EntryName{RootIno, "plain"}, EntryName{RootIno, name}, 0), ErrReservedName)
		_, err = fs.PutObject(ctx, ObjectName{"", name + "/k"}, strings.NewReader("x"), PutOptions{Size: 1})
		want(t, err, ErrReservedName)
		_, err = fs.Mkdir(ctx, Root, mustLookup(t, fs, RootIno, "other").Ino, name, 0o755)
		want(t, err, nil)
		mustFile(t, fs, RootIno, name)
		want(t, fs.Rename(ctx, Root, EntryName{RootIno, "plain"}, EntryName{RootIno, name}, RenameExchange), ErrReservedName)
	}
	for _, name := range []string{"xs3.example.com", "example.com", "s3.example.com.org"} {
		_, err := fs.CreateBucket(ctx, name, Root)
		want(t, err, nil)
	}
}
