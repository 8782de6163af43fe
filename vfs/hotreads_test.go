package vfs

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// TestHotReadsAreNeverBehind changes objects from several goroutines through
// all that can change them, while others read them all the time, so that they
// are remembered. The caller that changed something must see it at once, and nobody
// may see the bytes of one time with the ETag of another.
func TestHotReadsAreNeverBehind(t *testing.T) {
	fs := bucketFS(t, openTest(t, openLocal(t)))
	const writers, rounds = 4, 250
	ctx, stop := context.WithCancel(bg)
	var readers, changers sync.WaitGroup
	for seed := range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			for ctx.Err() == nil {
				key := fmt.Sprintf("%c%d/k%d", "de"[r.IntN(2)], r.IntN(writers), r.IntN(hotKeys))
				if err := readWhole(fs, key); err != nil {
					t.Errorf("reader of seed %d: %v", seed, err)
					return
				}
			}
		}()
	}
	for w := range writers {
		changers.Add(1)
		go func() {
			defer changers.Done()
			c := changer{fs: fs, r: rand.New(rand.NewPCG(uint64(w), 2)), id: w, dir: fmt.Sprint("d", w), want: map[int]string{}}
			for round := range rounds {
				if err := c.change(round); err != nil {
					t.Errorf("writer of seed %d, round %d: %v", w, round, err)
					return
				}
			}
		}()
	}
	changers.Wait()
	stop()
	readers.Wait()
}

// hotKeys is how many keys each changer has.
const hotKeys = 3

// readWhole gets an object, if there is one, and compares bytes and MD5.
func readWhole(fs *FS, key string) error {
	body, info, err := tryGet(bg, fs, key)
	if errors.Is(err, ErrNoSuchKey) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	sum := md5.Sum([]byte(body))
	if !strings.Contains(string(info.ETag), "-") && string(info.ETag) != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("get %s: %d bytes of MD5 %x, ETag %s", key, len(body), sum, info.ETag)
	}
	return nil
}

// changer changes the objects below a directory that only it changes.
type changer struct {
	fs   *FS
	r    *rand.Rand
	id   int
	dir  string
	want map[int]string // bodies by number of the key
}

func (c *changer) key(i int) string { return fmt.Sprintf("%s/k%d", c.dir, i) }

// change does one thing and looks at all keys.
func (c *changer) change(round int) error {
	i := c.r.IntN(hotKeys)
	var err error
	switch op := c.r.IntN(5); op {
	case 0, 1:
		size := []int{10, 3000, 20_000}[c.r.IntN(3)] // inline, and a blob
		body := strings.Repeat(fmt.Sprintf("%d.%d ", c.id, round), size/5)
		_, err = c.fs.PutObject(bg, ObjectName{"bucket", c.key(i)}, strings.NewReader(body), PutOptions{Size: int64(len(body))})
		c.want[i] = body
	case 2:
		_, err = c.fs.DeleteObject(bg, ObjectName{"bucket", c.key(i)}, DeleteOptions{})
		delete(c.want, i)
	case 3:
		err = c.rename()
	case 4:
		err = c.write(i, fmt.Sprintf("[%d.%d]", c.id, round))
	}
	if err != nil {
		return err
	}
	for i := range hotKeys {
		if err := c.look(i); err != nil {
			return err
		}
	}
	return nil
}

// look compares an object with what it must be.
func (c *changer) look(i int) error {
	body, exists := c.want[i]
	info, err := c.fs.HeadObject(bg, ObjectName{"bucket", c.key(i)}, GetOptions{})
	if !exists {
		if !errors.Is(err, ErrNoSuchKey) {
			return fmt.Errorf("head %s, which is deleted: %v", c.key(i), err)
		}
		return nil
	}
	if err != nil || info.Size != int64(len(body)) {
		return fmt.Errorf("head %s: %d bytes, %w, want %d", c.key(i), info.Size, err, len(body))
	}
	got, _, err := tryGet(bg, c.fs, c.key(i))
	if err != nil || got != body {
		return fmt.Errorf("get %s: %.30q, %w, want %.30q", c.key(i), got, err, body)
	}
	return nil
}

// rename moves the directory with all that is in it.
func (c *changer) rename() error {
	if len(c.want) == 0 {
		return nil
	}
	bucket, err := c.fs.Lookup(bg, Root, RootIno, "bucket")
	if err != nil {
		return err
	}
	to := fmt.Sprintf("%c%d", "ed"[strings.IndexByte("de", c.dir[0])], c.id)
	err = c.fs.Rename(bg, Root, EntryName{bucket.Ino, c.dir}, EntryName{bucket.Ino, to}, 0)
	c.dir = to
	return err
}

// write changes the first bytes of a file, and looks before they are flushed.
func (c *changer) write(i int, text string) error {
	old, exists := c.want[i]
	if !exists {
		return nil
	}
	a, err := c.fs.Resolve(bg, Root, "bucket/"+c.key(i), true)
	if err != nil {
		return err
	}
	f, err := c.fs.Open(bg, Root, a.Ino, OpenWrite)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(bg, []byte(text), 0); err == nil {
		c.want[i] = text + old[min(len(text), len(old)):]
		err = c.look(i)
	}
	return errors.Join(err, f.Close(bg))
}

// Objects are put below a directory that is renamed away again and again:
// what is put after a rename was acknowledged must not land in what was
// renamed, and nothing is lost.
func TestPutsDoNotFollowRenames(t *testing.T) {
	fs := bucketFS(t, openTest(t, openLocal(t)))
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	const writers, renames = 3, 40
	ctx, stop := context.WithCancel(bg)
	var putters sync.WaitGroup
	counts := make([]int, writers)
	for w := range writers {
		putters.Add(1)
		go func() {
			defer putters.Done()
			for ctx.Err() == nil {
				key := fmt.Sprintf("d/w%d-%d", w, counts[w])
				if _, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader("x"), PutOptions{Size: 1}); err != nil {
					t.Errorf("put %s: %v", key, err)
					return
				}
				counts[w]++
			}
		}()
	}
	size := func(dir string) int {
		n := 0
		o := ListOptions{Prefix: dir + "/", MaxKeys: MaxListKeys, NamesOnly: true}
		for {
			page, err := fs.ListObjects(bg, "bucket", o)
			if err != nil {
				t.Error(err)
				return n
			}
			if n += len(page.Objects); !page.Truncated {
				return n
			}
			o.StartAfter = page.Next
		}
	}
	moved := make([]int, renames)
	for i := range moved {
		put(t, fs, fmt.Sprintf("d/marker%d", i), "x")
		want(t, fs.Rename(bg, Root, EntryName{bucket, "d"}, EntryName{bucket, fmt.Sprint("gone", i)}, 0), nil)
		moved[i] = size(fmt.Sprint("gone", i))
	}
	stop()
	putters.Wait()
	total := size("d")
	for i, n := range moved {
		if now := size(fmt.Sprint("gone", i)); now != n {
			t.Errorf("directory %d held %d objects after it was renamed, and %d later", i, n, now)
		}
		total += n
	}
	expect := renames
	for _, n := range counts {
		expect += n
	}
	if total != expect {
		t.Errorf("%d objects, want %d", total, expect)
	}
}
