package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"golang.org/x/sys/unix"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

const (
	// coherenceSteps changes; OGW_COHERENCE_STEPS says otherwise.
	coherenceSteps = 2500
	coherenceNames = 10 // few, so that names come and go and are used again
	coherenceLook  = 50 // steps between two looks at everything
)

// TestCoherenceRandom makes thousands of random changes through S3 and NFS.
// After each, the next system calls through the mount see it, although the
// kernel keeps names, absent names, attributes and pages for a minute.
func TestCoherenceRandom(t *testing.T) {
	s := newServer(t, options{})
	s.makeBucket("random")
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("OGW_COHERENCE_SEED"), 10, 64); err == nil {
		seed = n
	}
	steps := testenv.Count(t, "OGW_COHERENCE_STEPS", coherenceSteps)
	t.Logf("seed %d (OGW_COHERENCE_SEED)", seed)
	client, err := doors.DialRPC(s.NFS)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := &coherent{t: t, s3: s.sdk(), nfs: nfs.Mount{Client: client}, dir: filepath.Join(s.Mount(), "random"),
		r: rand.New(rand.NewPCG(seed, 11)), files: map[string]*coherentFile{}, dirs: map[string]bool{}, did: map[string]int{}}
	for i := range steps {
		c.step(i)
		for _, k := range c.changed {
			c.look(k)
		}
		c.look(c.name())
		if i%coherenceLook == 0 {
			c.lookAtAll()
		}
		if t.Failed() {
			t.Fatalf("at step %d, seed %d: %s", i, seed, c.last)
		}
	}
	t.Logf("%d changes: %v", steps, c.did)
	checkClean(t, s)
}

// coherent is the model of a bucket: what was acknowledged.
type coherent struct {
	t     *testing.T
	s3    *s3.Client
	nfs   nfs.Mount
	dir   string // of the bucket in the mount
	r     *rand.Rand
	files map[string]*coherentFile
	dirs  map[string]bool // made explicitly

	changed []string // names that the last step concerned
	last    string
	did     map[string]int
}

type coherentFile struct {
	body string
	mode uint32 // 0: not known
	tag  string // user.tag, or ""
}

// name returns a file's name, up to two directories deep.
func (c *coherent) name() string {
	n := c.r.IntN(coherenceNames)
	return []string{"", "d0/", "d1/", "d1/sub/", "d2/a/b/"}[n%5] + fmt.Sprintf("f%d", n)
}

// target is a fresh NFS client, which has nothing cached.
func (c *coherent) target() *nfs.Target {
	t, err := c.nfs.Mount("/random", rpc.NewAuthUnix("test", 0, 0).Auth())
	if err != nil {
		c.t.Fatalf("NFS mount: %v", err)
	}
	return t
}

// isDir reports whether a directory is there, made or implied.
func (c *coherent) isDir(p string) bool {
	if p == "." || c.dirs[p] {
		return true
	}
	for k := range c.files {
		if strings.HasPrefix(k, p+"/") {
			return true
		}
	}
	for d := range c.dirs {
		if strings.HasPrefix(d, p+"/") {
			return true
		}
	}
	return false
}

// keep makes the directory explicit that a POSIX door emptied, if S3 implied it.
func (c *coherent) keep(p string) {
	if !c.isDir(p) {
		c.dirs[p] = true
	}
}

func (c *coherent) body(i int) string {
	return strings.Repeat(fmt.Sprintf("%d.", i), 1+c.r.IntN(4000))
}

type coherentChange struct {
	name string
	// run makes the change and reports whether it could.
	run func(c *coherent, i int, k string) bool
}

var coherentChanges = []coherentChange{
	{"s3 put", (*coherent).s3Put}, {"s3 put", (*coherent).s3Put}, {"s3 put", (*coherent).s3Put},
	{"s3 delete", (*coherent).s3Delete}, {"s3 delete", (*coherent).s3Delete},
	{"s3 copy", (*coherent).s3Copy},
	{"s3 put directory", (*coherent).s3PutDir}, {"s3 delete directory", (*coherent).s3DeleteDir},
	{"nfs write", (*coherent).nfsWrite}, {"nfs write", (*coherent).nfsWrite},
	{"nfs remove", (*coherent).nfsRemove},
	{"nfs rename", (*coherent).nfsRename}, {"nfs rename", (*coherent).nfsRename},
	{"nfs rename directory", (*coherent).nfsRenameDir},
	{"nfs chmod", (*coherent).nfsChmod},
	{"nfs truncate", (*coherent).nfsTruncate},
	{"nfs mkdir", (*coherent).nfsMkdir}, {"nfs rmdir", (*coherent).nfsRmdir},
}

func (c *coherent) step(i int) {
	for {
		ch := coherentChanges[c.r.IntN(len(coherentChanges))]
		k := c.name()
		c.changed = []string{k}
		c.last = ch.name + " " + k
		if ch.run(c, i, k) {
			c.did[ch.name]++
			return
		}
	}
}

func (c *coherent) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.last, err)
	}
}

func (c *coherent) s3Put(i int, k string) bool {
	bucket, body, tag := "random", c.body(i), fmt.Sprintf("tag%d", i)
	in := &s3.PutObjectInput{Bucket: &bucket, Key: &k, Body: strings.NewReader(body)}
	if i%2 == 0 {
		in.Metadata = map[string]string{"tag": tag}
	} else {
		tag = ""
	}
	_, err := c.s3.PutObject(context.Background(), in)
	c.ok(err)
	mode := uint32(0)
	if old := c.files[k]; old != nil {
		mode = old.mode // an overwritten file keeps its mode
	}
	c.files[k] = &coherentFile{body: body, mode: mode, tag: tag}
	return true
}

func (c *coherent) s3Delete(_ int, k string) bool {
	bucket := "random"
	_, err := c.s3.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &k})
	c.ok(err)
	delete(c.files, k)
	return true
}

func (c *coherent) s3Copy(_ int, k string) bool {
	to, bucket := c.name(), "random"
	f := c.files[k]
	if f == nil || to == k {
		return false
	}
	source := "random/" + k
	_, err := c.s3.CopyObject(context.Background(), &s3.CopyObjectInput{Bucket: &bucket, Key: &to, CopySource: &source})
	c.ok(err)
	mode := uint32(0)
	if old := c.files[to]; old != nil {
		mode = old.mode
	}
	c.files[to] = &coherentFile{body: f.body, mode: mode, tag: f.tag}
	c.changed = []string{k, to}
	return true
}

// s3PutDir makes a directory explicit, as mkdir does.
func (c *coherent) s3PutDir(_ int, k string) bool {
	bucket, key := "random", path.Dir(k)+"/"
	if path.Dir(k) == "." {
		return false
	}
	_, err := c.s3.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(nil)})
	c.ok(err)
	c.dirs[path.Dir(k)] = true
	return true
}

func (c *coherent) s3DeleteDir(_ int, k string) bool {
	bucket, key := "random", path.Dir(k)+"/"
	if !c.dirs[path.Dir(k)] {
		return false
	}
	_, err := c.s3.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	c.ok(err)
	delete(c.dirs, path.Dir(k))
	return true
}

func (c *coherent) nfsWrite(i int, k string) bool {
	if !c.isDir(path.Dir(k)) {
		return false
	}
	t, body := c.target(), c.body(i)
	f, err := t.OpenFile(k, 0o640)
	c.ok(err)
	old := c.files[k]
	if old == nil {
		old = &coherentFile{}
		c.files[k] = old
	}
	off := 0
	if len(old.body) > 0 && i%3 == 0 { // in the middle of what is there
		off = c.r.IntN(len(old.body))
		_, err = f.Seek(int64(off), 0)
		c.ok(err)
	} else {
		c.ok(t.Setattr(k, doors.TruncateTo(0)))
		old.body = ""
	}
	_, err = f.Write([]byte(body))
	c.ok(err)
	c.ok(f.Close())
	old.body = old.body[:off] + body + old.body[min(len(old.body), off+len(body)):]
	return true
}

func (c *coherent) nfsRemove(_ int, k string) bool {
	if c.files[k] == nil {
		return false
	}
	c.ok(c.target().Remove(k))
	delete(c.files, k)
	c.keep(path.Dir(k))
	return true
}

func (c *coherent) nfsRename(_ int, k string) bool {
	to := c.name()
	if c.files[k] == nil || to == k || !c.isDir(path.Dir(to)) {
		return false
	}
	c.last += " to " + to
	c.ok(c.target().Rename(k, to))
	c.files[to] = c.files[k]
	delete(c.files, k)
	c.keep(path.Dir(k))
	c.changed = []string{k, to}
	return true
}

// nfsRenameDir moves a directory with all below, and back at another time.
func (c *coherent) nfsRenameDir(_ int, k string) bool {
	from := strings.Split(path.Dir(k), "/")[0]
	to := []string{"d0", "d1", "d2", "moved"}[c.r.IntN(4)]
	if from == "." || !c.isDir(from) || c.isDir(to) {
		return false
	}
	c.last += ": " + from + " to " + to
	c.ok(c.target().Rename(from, to))
	c.changed = nil
	for name, f := range c.files {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(c.files, name)
			c.files[to+"/"+rest] = f
			c.changed = append(c.changed, name, to+"/"+rest)
		}
	}
	for name := range c.dirs {
		if rest, ok := strings.CutPrefix(name+"/", from+"/"); ok {
			delete(c.dirs, name)
			c.dirs[strings.TrimSuffix(to+"/"+rest, "/")] = true
		}
	}
	if to == "moved" { // no name leads there: take it apart
		for name := range c.files {
			if strings.HasPrefix(name, "moved/") {
				c.s3Delete(0, name)
			}
		}
		for name := range c.dirs {
			if name == "moved" || strings.HasPrefix(name, "moved/") {
				c.s3DeleteDir(0, name+"/x")
			}
		}
	}
	return true
}

func (c *coherent) nfsChmod(i int, k string) bool {
	f := c.files[k]
	if f == nil {
		return false
	}
	f.mode = 0o600 + uint32(i%64)
	c.ok(c.target().Setattr(k, nfs.Sattr3{Mode: nfs.SetMode{SetIt: true, Mode: f.mode}}))
	return true
}

func (c *coherent) nfsTruncate(_ int, k string) bool {
	f := c.files[k]
	if f == nil {
		return false
	}
	size := c.r.IntN(len(f.body) + 1000)
	c.ok(c.target().Setattr(k, doors.TruncateTo(uint64(size))))
	f.body += strings.Repeat("\x00", max(0, size-len(f.body)))
	f.body = f.body[:size]
	return true
}

func (c *coherent) nfsMkdir(_ int, k string) bool {
	d := path.Dir(k)
	if d == "." || c.isDir(d) || !c.isDir(path.Dir(d)) {
		return false
	}
	_, err := c.target().Mkdir(d, 0o755)
	c.ok(err)
	c.dirs[d] = true
	return true
}

func (c *coherent) nfsRmdir(_ int, k string) bool {
	d := path.Dir(k)
	if !c.dirs[d] {
		return false
	}
	delete(c.dirs, d)
	if c.isDir(d) { // something is in it
		c.dirs[d] = true
		return false
	}
	c.ok(c.target().RmDir(d))
	c.keep(path.Dir(d))
	return true
}

// look compares one name with the model: stat first, so that what is stale
// shows, then the attribute and the bytes.
func (c *coherent) look(k string) {
	c.t.Helper()
	name := filepath.Join(c.dir, k)
	f := c.files[k]
	var st unix.Stat_t
	err := unix.Lstat(name, &st)
	switch {
	case f == nil:
		if !errors.Is(err, syscall.ENOENT) {
			c.t.Errorf("%s is gone, lstat says %v", k, err)
		}
		return
	case err != nil:
		c.t.Errorf("lstat %s: %v", k, err)
		return
	case st.Size != int64(len(f.body)):
		c.t.Errorf("%s has size %d, want %d", k, st.Size, len(f.body))
	case f.mode != 0 && st.Mode&0o7777 != f.mode:
		c.t.Errorf("%s has mode %o, want %o", k, st.Mode&0o7777, f.mode)
	}
	b := make([]byte, 100)
	n, err := unix.Lgetxattr(name, "user.tag", b)
	if tag := string(b[:max(n, 0)]); tag != f.tag || f.tag != "" && err != nil {
		c.t.Errorf("%s has the attribute %q, %v; want %q", k, tag, err, f.tag)
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != f.body {
		c.t.Errorf("%s holds %d bytes (%.30q), %v; want %d (%.30q)", k, len(got), got, err, len(f.body), f.body)
	}
}

// lookAtAll compares the listing of every directory that was made, and of every
// file.
func (c *coherent) lookAtAll() {
	c.t.Helper()
	var got, want []string
	err := filepath.WalkDir(c.dir, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, _ := filepath.Rel(c.dir, p); !e.IsDir() || c.dirs[rel] {
			got = append(got, rel)
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Errorf("walk: %v", err)
	}
	for k := range c.files {
		want = append(want, k)
		c.look(k)
	}
	for d := range c.dirs {
		want = append(want, d)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("listed %v, want %v", got, want)
	}
}
