//go:build ceph

package engines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/cluster/rados"
	"ogw/cluster/rados/librados"
	"ogw/integration/testenv"
)

var namespaces atomic.Int64

// inPool are the options for a store of its own in a pool.
func inPool(c *testenv.Ceph, pool string) librados.Options {
	return librados.Options{Conf: c.Conf(), Pool: pool, Namespace: fmt.Sprint("ns", namespaces.Add(1))}
}

func tryRADOS(o librados.Options) (*rados.Blobs, error) {
	pool, err := librados.Open(context.Background(), o)
	if err != nil {
		return nil, err
	}
	return rados.Open(context.Background(), pool)
}

func openRADOS(t *testing.T, o librados.Options) *rados.Blobs {
	t.Helper()
	b, err := tryRADOS(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestRADOS(t *testing.T) {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	t.Run("Blobs", func(t *testing.T) {
		clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs { return openRADOS(t, inPool(c, pool)) })
	})
	t.Run("Clients", func(t *testing.T) {
		clustertest.TestBlobClients(t, func(t *testing.T) (a, b cluster.Blobs) {
			o := inPool(c, pool)
			return openRADOS(t, o), openRADOS(t, o)
		})
	})
}

// mixed are sizes of blobs of one object and of several.
func mixed(i int) int {
	if i%4 == 0 {
		return 9 << 20
	}
	return 64 << 10
}

// acknowledged holds the store to what was, for two clients.
func acknowledged(t *testing.T, o librados.Options, acked map[cluster.BlobID]int) {
	t.Helper()
	b := openRADOS(t, o)
	for id, n := range acked {
		wantBlob(t, b, id, n)
	}
	listed := map[cluster.BlobID]bool{}
	if err := b.List(context.Background(), cluster.BlobID{}, func(info cluster.BlobInfo) error {
		listed[info.ID] = true
		return nil
	}); err != nil {
		t.Error(err)
	}
	for id := range acked {
		if !listed[id] {
			t.Errorf("blob %v is not listed", id)
		}
	}
}

// An OSD that dies under load is no error, nor is its return.
func TestRADOSKilledOSD(t *testing.T) {
	c := testenv.StartCeph(t)
	o := inPool(c, c.Pool())
	b := openRADOS(t, o)
	var stored atomic.Int64
	acked, unavailable := writeBlobs(t, b, func(i int) int { stored.Add(1); return mixed(i) }, func() {
		more := func() { seen := stored.Load(); waitFor(t, func() bool { return stored.Load() > seen+40 }) }
		more()
		c.Kill("osd.1")
		begin := time.Now()
		more()
		t.Logf("an OSD died, and 40 more blobs were begun within %v", time.Since(begin).Round(100*time.Millisecond))
		c.AwaitUp(testenv.CephOSDs - 1)
		more()
		c.Start("osd.1")
		c.AwaitUp(testenv.CephOSDs)
		more()
	})
	if unavailable > 0 {
		t.Errorf("%d writers were told that an OSD had died", unavailable)
	}
	acknowledged(t, o, acked)
}

// With two of three OSDs dead nothing is written, in bounded time; all goes on when they
// are back.
func TestRADOSTwoDead(t *testing.T) {
	c := testenv.StartCeph(t)
	o := inPool(c, c.Pool())
	o.Timeout = 5 * time.Second
	b := openRADOS(t, o)
	var begun atomic.Int64
	acked, unavailable := writeBlobs(t, b, func(i int) int { begun.Add(1); return mixed(i) }, func() {
		waitFor(t, func() bool { return begun.Load() > 40 })
		c.Kill("osd.1", "osd.2")
		begin := time.Now()
		err := blob(b, cluster.BlobID{Content: 99}, 64<<10)
		if took := time.Since(begin); !errors.Is(err, cluster.ErrUnavailable) || took > 2*o.Timeout {
			t.Errorf("a write with one OSD of three: %v after %v", err, took)
		}
		begin = time.Now()
		if _, err := b.Usage(context.Background()); !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > 6*time.Second {
			t.Errorf("Usage with one OSD of three: %v after %v", err, time.Since(begin))
		}
		seen := begun.Load()
		waitFor(t, func() bool { return begun.Load() > seen+4 })
		c.Start("osd.1", "osd.2")
		c.AwaitUp(testenv.CephOSDs)
		begin = time.Now()
		waitFor(t, func() bool { return blob(b, cluster.BlobID{Content: 100, Seq: uint64(begun.Add(1))}, 64<<10) == nil })
		t.Logf("writes go on %v after the OSDs were back", time.Since(begin).Round(100*time.Millisecond))
	})
	if unavailable == 0 {
		t.Error("no writer noticed that two OSDs were dead")
	}
	acknowledged(t, o, acked)
}

// OSDs that stand still keep their connections: a caller who gives up is let go.
func TestRADOSSilent(t *testing.T) {
	c := testenv.StartCeph(t)
	b := openRADOS(t, inPool(c, c.Pool()))
	id, big := cluster.BlobID{Content: 1}, cluster.BlobID{Content: 2}
	if err := blob(b, id, 1<<20); err != nil {
		t.Fatal(err)
	}
	w, err := b.Create(context.Background(), big, -1)
	if err == nil {
		_, err = w.Write(blobBytes(big, 10<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	// Its bytes are on the way when its buffer goes to others.
	late := cluster.BlobID{Content: 4}
	small, err := b.Create(context.Background(), late, -1)
	if err == nil {
		_, err = small.Write(blobBytes(late, 1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // for its entry
	all := func(s syscall.Signal) {
		for i := range testenv.CephOSDs {
			c.Signal(fmt.Sprint("osd.", i), s)
		}
	}
	all(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if n, err := b.ReadAt(ctx, id, make([]byte, 1<<20), 0); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read of an impatient caller: %d, %v", n, err)
	}
	if _, _, err := w.Commit(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit of an impatient caller: %v", err)
	}
	brief, end := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer end()
	if _, _, err := small.Commit(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit of an impatient caller: %v", err)
	}
	if w, err = b.Create(context.Background(), cluster.BlobID{Content: 5}, -1); err == nil {
		_, err = w.Write(blobBytes(cluster.BlobID{Content: 5}, 8<<20))
		w.Abort()
	}
	if err != nil {
		t.Error(err)
	}
	all(syscall.SIGCONT)
	wantBlob(t, b, id, 1<<20)
	if err := blob(b, cluster.BlobID{Content: 3}, 10<<20); err != nil {
		t.Error(err)
	}
	if n, err := b.ReadAt(context.Background(), late, make([]byte, 1), 0); err == nil {
		wantBlob(t, b, late, 1<<20)
	} else if !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("what was given up: %d, %v", n, err)
	}
}

// A monitor that is away is noticed by who asks it, within bounds; data are read and written
// without.
func TestRADOSWithoutMonitor(t *testing.T) {
	c := testenv.StartCeph(t)
	o := inPool(c, c.Pool())
	b := openRADOS(t, o)
	id := cluster.BlobID{Content: 1}
	if err := blob(b, id, 9<<20); err != nil {
		t.Fatal(err)
	}
	c.Kill("mon.a")
	begin := time.Now()
	wantBlob(t, b, id, 9<<20)
	if err := blob(b, cluster.BlobID{Content: 2}, 9<<20); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("write without a monitor: %v after %v", err, time.Since(begin))
	}
	begin = time.Now()
	if _, err := b.Usage(context.Background()); err != nil || time.Since(begin) > 6*time.Second {
		t.Errorf("Usage without a monitor: %v after %v", err, time.Since(begin))
	}
	begin = time.Now()
	if _, err := b.Locate(context.Background(), id); !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > 15*time.Second {
		t.Errorf("Locate without a monitor: %v after %v", err, time.Since(begin))
	}
	begin = time.Now()
	if _, err := tryRADOS(o); !errors.Is(err, cluster.ErrUnavailable) || time.Since(begin) > 15*time.Second {
		t.Errorf("Open without a monitor: %v after %v", err, time.Since(begin))
	}
	c.Start("mon.a")
	c.AwaitUp(testenv.CephOSDs)
	if _, err := b.Locate(context.Background(), id); err != nil {
		t.Error(err)
	}
}

// A full pool takes no writes, says so at once, and takes deletes.
func TestRADOSFull(t *testing.T) {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	o := inPool(c, pool)
	b := openRADOS(t, o)
	const quota = 24 << 20
	c.Run("osd", "pool", "set-quota", pool, "max_bytes", fmt.Sprint(quota))
	acked, n := map[cluster.BlobID]int{}, uint64(0)
	// Ceph notices some seconds after the quota was passed.
	waitFor(t, func() bool {
		id := cluster.BlobID{Content: 1, Seq: n}
		begin := time.Now()
		err := blob(b, id, mixed(int(n)))
		if n++; err == nil {
			acked[id] = mixed(int(n - 1))
			time.Sleep(100 * time.Millisecond)
			return false
		}
		if took := time.Since(begin); !errors.Is(err, cluster.ErrNoSpace) || took > 5*time.Second {
			t.Errorf("a write to a full pool: %v after %v", err, took)
		}
		return true
	})
	if err := blob(b, cluster.BlobID{Content: 2}, 9<<20); !errors.Is(err, cluster.ErrNoSpace) {
		t.Errorf("a blob of several objects: %v", err)
	}
	waitFor(t, func() bool {
		u, err := b.Usage(context.Background())
		if err != nil {
			t.Error(err)
		}
		return u.Total >= quota && u.Free == 0
	})
	acknowledged(t, o, acked)
	for id := range acked {
		if err := b.Delete(context.Background(), id); err != nil {
			t.Errorf("a delete in a full pool: %v", err)
		}
		delete(acked, id)
		if len(acked) == 2 {
			break
		}
	}
	waitFor(t, func() bool {
		err := blob(b, cluster.BlobID{Content: 3, Seq: n}, 64<<10)
		if n++; err != nil && !errors.Is(err, cluster.ErrNoSpace) {
			t.Error(err)
		}
		return err == nil
	})
	acknowledged(t, o, acked)
}

// A pool that was deleted is not one without blobs, and one of the same name is another.
func TestRADOSPoolGone(t *testing.T) {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	o := inPool(c, pool)
	b := openRADOS(t, o)
	id := cluster.BlobID{Content: 1}
	if err := blob(b, id, 9<<20); err != nil {
		t.Fatal(err)
	}
	c.DeletePool(pool)
	waitFor(t, func() bool { // the OSDs know
		_, err := b.ReadAt(context.Background(), id, make([]byte, 1), 0)
		return err != nil
	})
	gone := func() {
		t.Helper()
		_, read := b.ReadAt(context.Background(), id, make([]byte, 1), 0)
		_, late := b.ReadAt(context.Background(), id, make([]byte, 1), 5<<20)
		_, locate := b.Locate(context.Background(), id)
		list := b.List(context.Background(), cluster.BlobID{}, func(cluster.BlobInfo) error { return nil })
		_, usage := b.Usage(context.Background())
		_, _, claim := b.Claim(context.Background(), 1, 0)
		for name, err := range map[string]error{
			"ReadAt": read, "ReadAt of a later part": late, "Locate": locate, "List": list, "Usage": usage, "Claim": claim,
			"Commit": blob(b, cluster.BlobID{Content: 2}, 16), "Delete": b.Delete(context.Background(), id),
		} {
			if !errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	gone()
	c.Run("osd", "pool", "create", pool, "16", "16")
	gone()
	if _, err := openRADOS(t, o).ReadAt(context.Background(), id, make([]byte, 1), 0); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("the new pool: %v", err)
	}
}

// keyring makes a user with these capabilities, and returns its options.
func keyring(t *testing.T, c *testenv.Ceph, o librados.Options, user, mon, osd string) librados.Options {
	t.Helper()
	o.User, o.Keyring = user, filepath.Join(testenv.TempDir(t), "keyring")
	c.Run("auth", "get-or-create", "client."+user, "mon", mon, "osd", osd, "-o", o.Keyring)
	t.Cleanup(func() { c.Run("auth", "rm", "client."+user) })
	return o
}

func TestRADOSBadOptions(t *testing.T) {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	good := inPool(c, pool)
	reader := keyring(t, c, good, "reader", "allow r", "allow r pool="+pool)
	elsewhere := keyring(t, c, good, "elsewhere", "allow r", "allow rw pool=other")
	nobody := filepath.Join(testenv.TempDir(t), "ceph.conf")
	if err := os.WriteFile(nobody, []byte("[global]\nmon_host = v2:"+testenv.FreeAddr(t)+"\nkeyring = "+reader.Keyring+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(testenv.TempDir(t), "keyring")
	if err := os.WriteFile(wrong, []byte("[client.admin]\n\tkey = AQBzzzNnAAAAABAAzzzzzzzzzzzzzzzzzzzzzw==\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Run("osd", "erasure-code-profile", "set", "two", "k=2", "m=1", "crush-failure-domain=host")
	coded := c.Pool("erasure", "two")
	for name, test := range map[string]struct {
		change func(o *librados.Options)
		want   error
		says   string
	}{
		"no pool":               {func(o *librados.Options) { o.Pool = "" }, cluster.ErrInvalid, "pool"},
		"no configuration":      {func(o *librados.Options) { o.Conf = "/nowhere/ceph.conf" }, cluster.ErrInvalid, "/nowhere/ceph.conf"},
		"another pool":          {func(o *librados.Options) { o.Pool = "nowhere" }, cluster.ErrUnavailable, "no pool nowhere"},
		"nobody there":          {func(o *librados.Options) { o.Conf = nobody }, cluster.ErrUnavailable, "does not take client.admin"},
		"unknown user":          {func(o *librados.Options) { o.User = "stranger" }, cluster.ErrUnavailable, "client.stranger"},
		"wrong key":             {func(o *librados.Options) { o.Keyring = wrong }, cluster.ErrUnavailable, "does not take client.admin"},
		"no keyring":            {func(o *librados.Options) { o.Keyring = "/nowhere/keyring" }, cluster.ErrUnavailable, "does not take client.admin"},
		"a reader":              {func(o *librados.Options) { *o = reader }, cluster.ErrUnavailable, "client.reader may not use pool"},
		"user of another one":   {func(o *librados.Options) { *o = elsewhere }, cluster.ErrUnavailable, "client.elsewhere may not use pool"},
		"an erasure-coded pool": {func(o *librados.Options) { o.Pool = coded }, librados.ErrUnfit, "takes no omap"},
	} {
		o := good
		test.change(&o)
		begin := time.Now()
		_, err := tryRADOS(o)
		if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.says) || time.Since(begin) > 15*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begin))
		}
	}
	least := keyring(t, c, good, "least", "allow r", "allow rw pool="+pool+" namespace="+good.Namespace)
	b := openRADOS(t, least)
	if err := blob(b, cluster.BlobID{Content: 1}, 9<<20); err != nil {
		t.Errorf("the least capabilities: %v", err)
	}
	_, _, claim := b.Claim(context.Background(), 1, 0)
	_, locate := b.Locate(context.Background(), cluster.BlobID{Content: 1})
	u, usage := b.Usage(context.Background())
	if err := errors.Join(claim, locate, usage); err != nil || u.Total == 0 {
		t.Errorf("the least capabilities: %+v, %v", u, err)
	}
}

// Locate shows each OSD that has a copy: its host, address, CRUSH location, and what it is to
// the blob; as they are now.
func TestRADOSLocate(t *testing.T) {
	c := testenv.StartCeph(t)
	pool := c.Pool()
	o := inPool(c, pool)
	b := openRADOS(t, o)
	id := cluster.BlobID{Content: 1}
	if err := blob(b, id, 9<<20); err != nil {
		t.Fatal(err)
	}
	all, err := b.Locate(context.Background(), id)
	if err != nil || len(all) != 3*testenv.CephOSDs { // objects
		t.Fatalf("%d locations, %v", len(all), err)
	}
	primaries := map[string]int{}
	for i, l := range all {
		var osd int
		if _, err := fmt.Sscanf(l.Node, "osd.%d on ", &osd); err != nil {
			t.Errorf("node %q: %v", l.Node, err)
		}
		if want := fmt.Sprintf("127.0.0.%d:", 11+osd); !strings.HasPrefix(l.Address, want) ||
			!strings.HasPrefix(l.Path, "rados://"+pool+"/"+o.Namespace+"/") ||
			!strings.Contains(l.Detail, fmt.Sprintf("CRUSH root=default host=node%d", osd+1)) ||
			!strings.HasPrefix(l.Detail, "PG ") || !strings.Contains(l.Detail, ", acting;") {
			t.Errorf("location %d: %+v", i, l)
		}
		if l.Primary {
			primaries[l.Path]++
		}
	}
	for path, n := range primaries {
		if n != 1 || len(primaries) != 3 {
			t.Errorf("%s has %d primaries", path, n)
		}
	}
	if !strings.HasSuffix(all[0].Path, "/blob/"+id.String()) {
		t.Errorf("the first is not the head: %s", all[0].Path)
	}
	c.Kill("osd.2")
	c.AwaitUp(testenv.CephOSDs - 1)
	all, err = b.Locate(context.Background(), id)
	if err != nil || len(all) != 3*(testenv.CephOSDs-1) {
		t.Errorf("with an OSD dead, %d locations, %v", len(all), err)
	}
	c.Start("osd.2")
	c.AwaitUp(testenv.CephOSDs)
}
