package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	ns "ogw/vfs"
)

// stackClient works in a bucket of its own, one operation after the other, and
// keeps the history of what the bucket held.
type stackClient struct {
	w      *stackWorld
	bucket string
	dir    ns.Ino
	rng    *rand.Rand
	cache  contentCache
	file   *stackFile // open, or nil
	closed ns.Ino     // what this operation closed
	// touched are the paths that this operation may change; stackUploads
	// stands for an upload that it makes.
	touched []string
	last    string   // operation, for messages
	detail  string   // of the operation
	log     []string // the newest operations, under stackWorld.mu

	// Under stackWorld.mu. State i is what operation i left; states[0] is
	// the beginning.
	states []treeState
	loose  map[int]bool // operations on several keys, each for itself
	// unknown are operations that may have happened or not, and what they
	// touched.
	unknown map[int][]string
	floor   int // newest state that is known to be durable
	begun   int // newest operation that was begun
	open    map[ns.Ino][][]byte
}

// stackFile is an open file; its versions since the last sync are in
// stackClient.open.
type stackFile struct {
	*ns.File
	data    []byte
	unsaved bool
}

// stackUploads is what the names of uploads in a treeState begin with.
const stackUploads = "upload "

// maxStackFile bounds files: every check reads them all.
const maxStackFile = 300_000

var (
	stackKeys = []string{"a", "b", "c", "d/x", "d/y", "d/e/z", "f/w"}
	stackDirs = []string{"", "d", "d/e", "f", "g", "d/g"}
)

func (c *stackClient) key() string {
	key := stackKeys[c.rng.IntN(len(stackKeys))]
	c.touched = append(c.touched, key)
	return key
}

// path is a path that need not exist.
func (c *stackClient) path() string {
	p := path.Join(stackDirs[c.rng.IntN(len(stackDirs))], []string{"a", "b", "x", "g", "z"}[c.rng.IntN(5)])
	c.touched = append(c.touched, p)
	return p
}

// bytes are the contents of a file: inline, in a segment, rarely in a file.
func (c *stackClient) bytes() []byte {
	sizes := []int{0, 10, 700, 1500, 4096, 9000, 9000, 9000, 40_000, 70_000}
	n := sizes[c.rng.IntN(len(sizes))]
	if n > 0 {
		n += c.rng.IntN(n)
	}
	if c.rng.IntN(120) == 0 {
		n = smallMax + c.rng.IntN(smallMax)
	}
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(c.rng.Uint32()), byte(c.rng.Uint32()), byte(c.rng.Uint32())}).Read(data)
	return data
}

// parent resolves the folder of p.
func (c *stackClient) parent(ctx context.Context, p string) (ns.Ino, string, error) {
	a, err := c.w.ns.ResolveBelow(ctx, ns.Root, c.dir, path.Dir("/"+p), false)
	return a.Ino, path.Base(p), err
}

func (c *stackClient) resolve(ctx context.Context, p string) (ns.Attr, error) {
	return c.w.ns.ResolveBelow(ctx, ns.Root, c.dir, "/"+p, false)
}

// stackOp is one operation. It returns whether success makes everything
// before it durable.
type stackOp struct {
	name   string
	weight int
	run    func(c *stackClient, ctx context.Context) (durable bool, err error)
	loose  bool
}

var stackOps = []stackOp{
	{"put", 20, (*stackClient).put, false},
	{"upload", 4, (*stackClient).upload, false},
	{"part", 5, (*stackClient).part, false},
	{"complete", 5, (*stackClient).complete, false},
	{"abort", 2, (*stackClient).abort, false},
	{"copy", 8, (*stackClient).copy, false},
	{"delete", 8, (*stackClient).delete, false},
	{"delete many", 4, (*stackClient).deleteMany, true},
	{"open", 14, (*stackClient).openFile, false},
	{"write", 30, (*stackClient).write, false},
	{"sync", 12, (*stackClient).sync, false},
	{"close", 8, (*stackClient).close, false},
	{"copy range", 3, (*stackClient).copyRange, false},
	{"punch", 3, (*stackClient).punch, false},
	{"mkdir", 6, (*stackClient).mkdir, false},
	{"rmdir", 3, (*stackClient).rmdir, false},
	{"rename", 8, (*stackClient).rename, false},
	{"link", 5, (*stackClient).link, false},
	{"symlink", 3, (*stackClient).symlink, false},
	{"unlink", 6, (*stackClient).unlink, false},
	{"truncate", 5, (*stackClient).truncate, false},
	{"xattr", 5, (*stackClient).xattr, false},
	{"chmod", 3, (*stackClient).chmod, false},
	{"sync all", 3, (*stackClient).syncAll, false},
	{"collect", 3, (*stackClient).collect, false},
	{"flush", 1, (*stackClient).flushMeta, false},
	{"compact", 1, (*stackClient).compactMeta, false},
	{"collect segments", 3, (*stackClient).collectSegments, false},
}

func pickOp(rng *rand.Rand) *stackOp {
	total := 0
	for i := range stackOps {
		total += stackOps[i].weight
	}
	n := rng.IntN(total)
	for i := range stackOps {
		if n -= stackOps[i].weight; n < 0 {
			return &stackOps[i]
		}
	}
	panic("unreachable")
}

// refusals are the errors that an operation on a random path may well give.
var refusals = []error{ns.ErrNotExist, ns.ErrExist, ns.ErrNotEmpty, ns.ErrIsDir, ns.ErrNotDir, ns.ErrInvalid,
	ns.ErrNoSuchKey, ns.ErrNoAttr, ns.ErrNoSuchUpload, ns.ErrPartTooSmall, ns.ErrNotSupported, errNothing}

// errNothing: the operation has nothing to work on.
var errNothing = errors.New("nothing to do")

func (c *stackClient) put(ctx context.Context) (bool, error) {
	key := c.key()
	if c.isOpen(ctx, key) {
		return false, errNothing
	}
	data := c.bytes()
	o := ns.PutOptions{Size: int64(len(data))}
	if c.rng.IntN(4) == 0 {
		o.Size = -1
	}
	if c.rng.IntN(3) == 0 {
		o.Meta.User = map[string]string{"t1": fmt.Sprint(c.rng.Uint32())}
	}
	_, err := c.w.ns.PutObject(ctx, ns.ObjectName{Bucket: c.bucket, Key: key}, bytes.NewReader(data), o)
	return true, err
}

// isOpen reports whether p is the file that is open: replacing its content drops
// its unsynced writes, which other suites look at.
func (c *stackClient) isOpen(ctx context.Context, p string) bool {
	if c.file == nil {
		return false
	}
	a, err := c.w.ns.ResolveBelow(ctx, ns.Root, c.dir, "/"+p, true)
	return err == nil && a.Ino == c.file.Ino()
}

func (c *stackClient) upload(ctx context.Context) (bool, error) {
	c.touched = append(c.touched, stackUploads)
	_, err := c.w.ns.CreateUpload(ctx, ns.ObjectName{Bucket: c.bucket, Key: c.key()}, ns.PutOptions{Size: -1}, "", false)
	return true, err
}

// anyUpload picks an upload.
func (c *stackClient) anyUpload(ctx context.Context) (ns.UploadInfo, error) {
	page, err := c.w.ns.ListUploads(ctx, c.bucket, ns.ListUploadsOptions{MaxUploads: 100})
	if err != nil {
		return ns.UploadInfo{}, err
	}
	if len(page.Uploads) == 0 {
		return ns.UploadInfo{}, errNothing
	}
	u := page.Uploads[c.rng.IntN(len(page.Uploads))]
	c.touched = append(c.touched, u.Key, "upload "+u.Key+" "+u.ID)
	return u, nil
}

// minPartBytes is S3's.
const minPartBytes = 5 << 20

func (c *stackClient) part(ctx context.Context) (bool, error) {
	u, err := c.anyUpload(ctx)
	if err != nil {
		return false, err
	}
	data := c.bytes()
	if c.rng.IntN(100) == 0 {
		data = bytes.Repeat([]byte{7}, minPartBytes)
	}
	_, err = c.w.ns.PutPart(ctx, ns.ObjectName{Bucket: c.bucket, Key: u.Key}.Upload(u.ID), 1+c.rng.IntN(2), bytes.NewReader(data), ns.PutOptions{Size: int64(len(data))})
	return true, err
}

func (c *stackClient) complete(ctx context.Context) (bool, error) {
	u, err := c.anyUpload(ctx)
	if err != nil || c.isOpen(ctx, u.Key) {
		return false, errNothing
	}
	list, _, err := c.w.ns.ListParts(ctx, ns.ObjectName{Bucket: c.bucket, Key: u.Key}.Upload(u.ID), 0, 10)
	if err != nil || len(list) == 0 {
		return false, errNothing
	}
	if list[0].Size < minPartBytes {
		list = list[:1]
	}
	var parts []ns.CompletePart
	for _, p := range list {
		parts = append(parts, ns.CompletePart{Number: p.Number, ETag: p.ETag})
	}
	_, err = c.w.ns.CompleteUpload(ctx, ns.ObjectName{Bucket: c.bucket, Key: u.Key}.Upload(u.ID), ns.CompleteOptions{Parts: parts, MinPartBytes: minPartBytes})
	return true, err
}

func (c *stackClient) abort(ctx context.Context) (bool, error) {
	u, err := c.anyUpload(ctx)
	if err != nil {
		return false, err
	}
	return true, c.w.ns.AbortUpload(ctx, ns.ObjectName{Bucket: c.bucket, Key: u.Key}.Upload(u.ID))
}

func (c *stackClient) copy(ctx context.Context) (bool, error) {
	from, to := c.key(), c.key()
	if from == to || c.isOpen(ctx, to) {
		return false, errNothing
	}
	_, err := c.w.ns.CopyObject(ctx, ns.ObjectName{Bucket: c.bucket, Key: from}, ns.ObjectName{Bucket: c.bucket, Key: to}, ns.CopyOptions{})
	return true, err
}

func (c *stackClient) delete(ctx context.Context) (bool, error) {
	existed, err := c.w.ns.DeleteObject(ctx, ns.ObjectName{Bucket: c.bucket, Key: c.key()}, ns.DeleteOptions{})
	return existed, err
}

func (c *stackClient) deleteMany(ctx context.Context) (bool, error) {
	keys := slices.Clone(stackKeys)
	c.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	c.touched = append(c.touched, keys[:3]...)
	results, err := c.w.ns.DeleteObjects(ctx, c.bucket, keys[:3])
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return false, err
}

func (c *stackClient) openFile(ctx context.Context) (bool, error) {
	if c.file != nil {
		return false, errNothing
	}
	// What is read here as its content must be durable.
	if err := c.w.ns.SyncAll(ctx); err != nil {
		return false, err
	}
	dir, name, err := c.parent(ctx, c.path())
	if err != nil {
		return false, err
	}
	a, f, created, err := c.w.ns.Create(ctx, ns.Root, dir, name, ns.CreateOptions{Mode: 0o644, Flags: ns.OpenRead | ns.OpenWrite})
	if err != nil {
		return false, err
	}
	data, err := readFile(c.w.ns, &a)
	if err != nil {
		return false, errors.Join(err, f.Close(ctx))
	}
	c.detail = fmt.Sprintf("inode %d of %d bytes", f.Ino(), len(data))
	c.file = &stackFile{File: f, data: data}
	c.setVersions(f.Ino(), data)
	return created, nil
}

// setVersions begins anew, with what is durable.
func (c *stackClient) setVersions(ino ns.Ino, versions ...[]byte) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.open = maps.Clone(c.open)
	if c.open == nil {
		c.open = make(map[ns.Ino][][]byte)
	}
	delete(c.open, ino)
	if len(versions) > 0 {
		c.open[ino] = versions
	}
}

// addVersion notes what is about to be written.
func (c *stackClient) addVersion(data []byte) {
	c.w.mu.Lock()
	old := c.open[c.file.Ino()]
	c.w.mu.Unlock()
	c.file.data = data
	c.setVersions(c.file.Ino(), append(slices.Clip(old), data)...)
}

// overwrite returns data with p at off.
func overwrite(data []byte, off int, p []byte) []byte {
	fresh := make([]byte, max(len(data), off+len(p)))
	copy(fresh, data)
	copy(fresh[off:], p)
	return fresh
}

func (c *stackClient) write(ctx context.Context) (bool, error) {
	if c.file == nil {
		return false, errNothing
	}
	p := c.bytes()
	off := c.rng.IntN(len(c.file.data) + 5000)
	if len(p) == 0 || off+len(p) > maxStackFile {
		return false, errNothing
	}
	c.detail = fmt.Sprintf("%d at %d of inode %d", len(p), off, c.file.Ino())
	c.addVersion(overwrite(c.file.data, off, p))
	c.file.unsaved = true
	_, err := c.file.WriteAt(ctx, p, int64(off))
	return false, err
}

func (c *stackClient) sync(ctx context.Context) (bool, error) {
	if c.file == nil {
		return false, errNothing
	}
	if err := c.file.Sync(ctx); err != nil {
		return false, err
	}
	c.file.unsaved = false
	c.setVersions(c.file.Ino(), c.file.data)
	return true, nil
}

func (c *stackClient) close(ctx context.Context) (bool, error) {
	if c.file == nil {
		return false, errNothing
	}
	f := c.file
	if !f.unsaved { // then Close makes nothing durable: what was cut, was cut by name
		if err := f.Sync(ctx); err != nil {
			return false, err
		}
	}
	c.file = nil
	if err := f.Close(ctx); err != nil {
		return false, err
	}
	c.closed = f.Ino()
	return true, nil
}

func (c *stackClient) copyRange(ctx context.Context) (bool, error) {
	if c.file == nil {
		return false, errNothing
	}
	a, err := c.resolve(ctx, c.key())
	if err != nil || !a.IsRegular() || a.Ino == c.file.Ino() {
		return false, errNothing
	}
	src, err := c.w.ns.Open(ctx, ns.Root, a.Ino, ns.OpenRead)
	if err != nil {
		return false, err
	}
	defer src.Close(ctx)
	data, err := readFile(c.w.ns, &a)
	if err != nil {
		return false, err
	}
	off := c.rng.IntN(len(c.file.data) + 5000)
	if len(data) == 0 || off+len(data) > maxStackFile {
		return false, errNothing // copying nothing does not extend the file
	}
	c.detail = fmt.Sprintf("%d of inode %d to %d of inode %d", len(data), a.Ino, off, c.file.Ino())
	c.addVersion(overwrite(c.file.data, off, data))
	c.file.unsaved = true
	n, err := c.file.CopyRange(ctx, int64(off), src, 0, int64(len(data)))
	if err == nil && n != int64(len(data)) {
		err = fmt.Errorf("copied %d bytes of %d", n, len(data))
	}
	return false, err
}

func (c *stackClient) punch(ctx context.Context) (bool, error) {
	if c.file == nil || len(c.file.data) == 0 {
		return false, errNothing
	}
	off := c.rng.IntN(len(c.file.data))
	n := min(1+c.rng.IntN(50_000), len(c.file.data)-off)
	c.detail = fmt.Sprintf("%d at %d of inode %d", n, off, c.file.Ino())
	c.addVersion(overwrite(c.file.data, off, make([]byte, n)))
	c.file.unsaved = true
	return false, c.file.Allocate(ctx, ns.AllocKeepSize|ns.AllocPunchHole, int64(off), int64(n))
}

func (c *stackClient) mkdir(ctx context.Context) (bool, error) {
	dir, name, err := c.parent(ctx, c.path())
	if err == nil {
		_, err = c.w.ns.Mkdir(ctx, ns.Root, dir, name, 0o755)
	}
	return true, err
}

func (c *stackClient) rmdir(ctx context.Context) (bool, error) {
	p := stackDirs[1+c.rng.IntN(len(stackDirs)-1)]
	c.touched = append(c.touched, p)
	dir, name, err := c.parent(ctx, p)
	if err == nil {
		err = c.w.ns.Rmdir(ctx, ns.Root, dir, name)
	}
	return true, err
}

func (c *stackClient) rename(ctx context.Context) (bool, error) {
	from, name, err := c.parent(ctx, c.path())
	if err != nil {
		return false, err
	}
	to, newName, err := c.parent(ctx, c.path())
	if err != nil {
		return false, err
	}
	if from == to && name == newName {
		return false, errNothing
	}
	flags := []ns.RenameFlags{0, 0, 0, ns.RenameNoReplace, ns.RenameExchange}[c.rng.IntN(5)]
	a, errA := c.w.ns.Lookup(ctx, ns.Root, from, name)
	b, errB := c.w.ns.Lookup(ctx, ns.Root, to, newName)
	if errA == nil && errB == nil && a.Ino == b.Ino {
		return false, errNothing // changes nothing
	}
	return true, c.w.ns.Rename(ctx, ns.Root, ns.EntryName{Dir: from, Name: name}, ns.EntryName{Dir: to, Name: newName}, flags)
}

func (c *stackClient) link(ctx context.Context) (bool, error) {
	a, err := c.resolve(ctx, c.path())
	if err != nil || a.IsDir() {
		return false, errNothing
	}
	dir, name, err := c.parent(ctx, c.path())
	if err == nil {
		_, err = c.w.ns.Link(ctx, ns.Root, a.Ino, dir, name)
	}
	return true, err
}

func (c *stackClient) symlink(ctx context.Context) (bool, error) {
	dir, name, err := c.parent(ctx, c.path())
	if err == nil {
		_, err = c.w.ns.Symlink(ctx, ns.Root, dir, name, "nowhere/"+strings.Repeat("x", c.rng.IntN(50)))
	}
	return true, err
}

func (c *stackClient) unlink(ctx context.Context) (bool, error) {
	dir, name, err := c.parent(ctx, c.path())
	if err == nil {
		err = c.w.ns.Unlink(ctx, ns.Root, dir, name)
	}
	return true, err
}

func (c *stackClient) truncate(ctx context.Context) (bool, error) {
	a, err := c.resolve(ctx, c.path())
	if err != nil || !a.IsRegular() {
		return false, errNothing
	}
	size := int64(c.rng.IntN(int(a.Size) + 3000))
	if c.file == nil || c.file.Ino() != a.Ino {
		_, err = c.w.ns.SetAttr(ctx, ns.Root, a.Ino, ns.SetAttr{Size: &size})
		return size != a.Size, err
	}
	cut := make([]byte, size)
	copy(cut, c.file.data)
	c.detail = fmt.Sprintf("inode %d from %d to %d", a.Ino, a.Size, size)
	c.addVersion(cut)
	_, err = c.w.ns.SetAttr(ctx, ns.Root, a.Ino, ns.SetAttr{Size: &size})
	return false, err
}

func (c *stackClient) xattr(ctx context.Context) (bool, error) {
	a, err := c.resolve(ctx, c.path())
	if err != nil || !a.IsRegular() && !a.IsDir() {
		return false, errNothing
	}
	name := fmt.Sprintf("user.t%d", c.rng.IntN(3))
	if c.rng.IntN(3) == 0 {
		return true, c.w.ns.RemoveXattr(ctx, ns.Root, a.Ino, name)
	}
	return true, c.w.ns.SetXattr(ctx, ns.Root, a.Ino, ns.Xattr{Name: name, Value: fmt.Append(nil, c.rng.Uint64())}, 0)
}

func (c *stackClient) chmod(ctx context.Context) (bool, error) {
	a, err := c.resolve(ctx, c.path())
	if err != nil || a.IsSymlink() {
		return false, errNothing
	}
	mode := uint32(0o600 + c.rng.IntN(0o100))
	_, err = c.w.ns.SetAttr(ctx, ns.Root, a.Ino, ns.SetAttr{Mode: &mode})
	return true, err
}

func (c *stackClient) syncAll(ctx context.Context) (bool, error) {
	if err := c.w.ns.SyncAll(ctx); err != nil {
		return false, err
	}
	if c.file != nil {
		c.setVersions(c.file.Ino(), c.file.data)
	}
	return true, nil
}

func (c *stackClient) collect(ctx context.Context) (bool, error) {
	_, err := c.w.ns.Collect(ctx)
	return false, err
}

func (c *stackClient) flushMeta(context.Context) (bool, error) {
	if c.w.checks == nil {
		return false, errNothing // nobody would recover its panic when the disk fails
	}
	_, err := c.w.cl.KV.(*KV).db.AsyncFlush()
	return false, err
}

func (c *stackClient) compactMeta(ctx context.Context) (bool, error) {
	if c.w.checks == nil {
		return false, errNothing
	}
	return false, c.w.cl.KV.(*KV).db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, false)
}

func (c *stackClient) collectSegments(context.Context) (bool, error) {
	c.w.cl.Blobs.(*Blobs).collector.pass()
	return false, nil
}
