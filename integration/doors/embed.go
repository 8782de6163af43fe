package doors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ogw/vfs"
	"ogw/vfs/iofs"
)

// Go is the Go API in the process that serves the other doors. It is a Store
// by the object operations; Files returns its POSIX side.
type Go struct {
	fs *vfs.FS
}

var _ Store = (*Go)(nil)

// NewGo returns the object operations of fs.
func NewGo(fs *vfs.FS) *Go { return &Go{fs} }

// Name implements Door.
func (d *Go) Name() string { return "go" }

// Write implements Door.
func (d *Go) Write(path, body string) error { return d.WriteIf(path, body, Cond{}) }

// WriteIf implements Store.
func (d *Go) WriteIf(path, body string, c Cond) error {
	name := objectName(path)
	_, err := d.fs.PutObject(context.Background(), name, strings.NewReader(body),
		vfs.PutOptions{Size: int64(len(body)), Cond: c.preconditions()})
	return goError(err)
}

func (c Cond) preconditions() (p vfs.Preconditions) {
	if c.IfMatch != "" {
		p.IfMatch = []vfs.ETag{vfs.ETag(c.IfMatch)}
	}
	if c.IfNone {
		p.IfNoneMatch = []vfs.ETag{"*"}
	}
	return p
}

// Read implements Door.
func (d *Go) Read(path string) (string, error) {
	name := objectName(path)
	o, err := d.fs.GetObject(context.Background(), name, vfs.GetOptions{})
	if err != nil {
		return "", goError(err)
	}
	defer o.Close()
	b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Info.Size))
	return string(b), err
}

// Head implements Store.
func (d *Go) Head(path string) (int64, string, error) {
	name := objectName(path)
	info, err := d.fs.HeadObject(context.Background(), name, vfs.GetOptions{})
	return info.Size, string(info.ETag), goError(err)
}

// Delete implements Object.
func (d *Go) Delete(path string) error {
	name := objectName(path)
	_, err := d.fs.DeleteObject(context.Background(), name, vfs.DeleteOptions{})
	return err
}

// DeleteMany implements Store.
func (d *Go) DeleteMany(bucket string, keys []string) error {
	results, err := d.fs.DeleteObjects(context.Background(), bucket, keys)
	if err == nil && len(results) != len(keys) {
		err = fmt.Errorf("%d results for %d keys", len(results), len(keys))
	}
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// Copy implements Store.
func (d *Go) Copy(from, to string) error {
	_, err := d.fs.CopyObject(context.Background(), objectName(from), objectName(to), vfs.CopyOptions{ReplaceMeta: from == to})
	return goError(err)
}

// Keys implements Store.
func (d *Go) Keys(bucket, prefix, delimiter string, page int32) ([]string, error) {
	var keys []string
	o := vfs.ListOptions{Prefix: prefix, Delimiter: delimiter, MaxKeys: int(page)}
	for {
		r, err := d.fs.ListObjects(context.Background(), bucket, o)
		if err != nil {
			return nil, err
		}
		names := slices.Clone(r.CommonPrefixes)
		for _, i := range r.Objects {
			names = append(names, i.Key)
		}
		slices.Sort(names) // a page holds keys and prefixes apart
		keys = append(keys, names...)
		if !r.Truncated {
			return keys, nil
		}
		o.StartAfter = r.Next
	}
}

// Upload implements Store.
func (d *Go) Upload(path string) (Upload, error) {
	name := objectName(path)
	u, err := d.fs.CreateUpload(context.Background(), name, vfs.PutOptions{Size: -1}, "", false)
	return &goUpload{d.fs, name.Upload(u.ID)}, err
}

type goUpload struct {
	fs   *vfs.FS
	name vfs.UploadName
}

func (u *goUpload) Part(number int, body string) (string, error) {
	info, err := u.fs.PutPart(context.Background(), u.name, number, strings.NewReader(body),
		vfs.PutOptions{Size: int64(len(body))})
	return string(info.ETag), goError(err)
}

func (u *goUpload) CopyPart(number int, from string, off, length int64) (string, error) {
	info, err := u.fs.CopyPart(context.Background(), u.name, number, vfs.PartSource{ObjectName: objectName(from), Off: off, Length: length})
	return string(info.ETag), goError(err)
}

func (u *goUpload) Complete(etags []string, c Cond) (string, error) {
	var parts []vfs.CompletePart
	for i, e := range etags {
		parts = append(parts, vfs.CompletePart{Number: i + 1, ETag: vfs.ETag(e)})
	}
	info, err := u.fs.CompleteUpload(context.Background(), u.name, vfs.CompleteOptions{Parts: parts, Cond: c.preconditions()})
	return string(info.ETag), goError(err)
}

func (u *goUpload) Abort() error {
	return goError(u.fs.AbortUpload(context.Background(), u.name))
}

// goError gives the sentinels their place among the errors of all doors.
func goError(err error) error {
	switch {
	case errors.Is(err, vfs.ErrNoSuchKey), errors.Is(err, vfs.ErrNotExist), errors.Is(err, vfs.ErrNoSuchUpload):
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	case errors.Is(err, vfs.ErrPrecondition):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// Files is the POSIX side of the Go API; it reads through io/fs.
type Files struct {
	fs   *vfs.FS
	view *iofs.FS
}

var _ Posix = (*Files)(nil)

// Files returns the POSIX operations.
func (d *Go) Files() (*Files, error) {
	view, err := iofs.New(context.Background(), d.fs, vfs.Root, "/")
	return &Files{d.fs, view}, err
}

// Name implements Door.
func (d *Files) Name() string { return "go files" }

// parent resolves the directory of p.
func (d *Files) parent(p string) (vfs.Ino, string, error) {
	dir, name := path.Split(p)
	a, err := d.fs.Resolve(context.Background(), vfs.Root, "/"+dir, true)
	return a.Ino, name, err
}

// Write implements Door.
func (d *Files) Write(p, body string) error {
	ctx := context.Background()
	dir, name, err := d.parent(p)
	if err != nil {
		return goError(err)
	}
	_, f, _, err := d.fs.Create(ctx, vfs.Root, dir, name, vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite | vfs.OpenTrunc})
	if err != nil {
		return goError(err)
	}
	// In two pieces, so that the file is seen to grow.
	half := len(body) / 2
	_, err = f.WriteAt(ctx, []byte(body[:half]), 0)
	if err == nil {
		_, err = f.WriteAt(ctx, []byte(body[half:]), int64(half))
	}
	return errors.Join(err, f.Close(ctx))
}

// Read implements Door.
func (d *Files) Read(p string) (string, error) {
	b, err := fs.ReadFile(d.view, p)
	return string(b), err
}

// Mkdir implements Posix.
func (d *Files) Mkdir(p string) error {
	dir, name, err := d.parent(p)
	if err == nil {
		_, err = d.fs.Mkdir(context.Background(), vfs.Root, dir, name, 0o755)
	}
	return goError(err)
}

// Remove implements Posix.
func (d *Files) Remove(p string) error {
	dir, name, err := d.parent(p)
	if err == nil {
		err = d.fs.Unlink(context.Background(), vfs.Root, dir, name)
	}
	return goError(err)
}

// Rmdir implements Posix.
func (d *Files) Rmdir(p string) error {
	dir, name, err := d.parent(p)
	if err == nil {
		err = d.fs.Rmdir(context.Background(), vfs.Root, dir, name)
	}
	return goError(err)
}

// Rename implements Posix.
func (d *Files) Rename(from, to string) error {
	dir, name, err := d.parent(from)
	if err != nil {
		return goError(err)
	}
	newDir, newName, err := d.parent(to)
	if err == nil {
		err = d.fs.Rename(context.Background(), vfs.Root, vfs.EntryName{Dir: dir, Name: name}, vfs.EntryName{Dir: newDir, Name: newName}, 0)
	}
	return goError(err)
}

// List implements Posix.
func (d *Files) List(dir string) ([]string, error) {
	entries, err := fs.ReadDir(d.view, dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// objectName cuts a path into bucket and key.
func objectName(path string) vfs.ObjectName {
	b, k := split(path)
	return vfs.ObjectName{Bucket: b, Key: k}
}
