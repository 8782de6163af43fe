package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"

	"golang.org/x/sys/unix"
)

// childEnv makes a run of the test binary a process of its own: what it does,
// and the folder.
const childEnv = "OGW_TEST_LOCAL_CHILD"

// TestChild is not a test: it is what the tests of this file start.
func TestChild(t *testing.T) {
	what, dir, _ := strings.Cut(os.Getenv(childEnv), " ")
	switch what {
	case "":
		t.Skip("only as a process of another test")
	case "hold":
		openAt(t, Options{Dir: dir})
		fmt.Println("open")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent is done
	case "few":
		fewFiles(t, dir)
	}
}

func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+dir)
	return cmd
}

// TestTwoProcesses: a folder that another process has open is refused by
// whatever path, also when somebody removed the lock.
func TestTwoProcesses(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	cmd := child(t, "hold", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "open" {
	}
	pid := fmt.Sprintf("process %d", cmd.Process.Pid)
	refused := func(path, shown, holder string) {
		t.Helper()
		_, err := Open(ctx, Options{Dir: path})
		if !errors.Is(err, cluster.ErrLocked) || !strings.Contains(err.Error(), shown) || !strings.Contains(err.Error(), holder) {
			t.Errorf("Open(%q): %v", path, err)
		}
	}
	refused(dir, dir, pid)

	link := filepath.Join(base, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	refused(link, link, pid)

	t.Chdir(base)
	refused("./store/../store", dir, pid)

	bind := filepath.Join(base, "bind")
	if err := os.Mkdir(bind, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(dir, bind, "", unix.MS_BIND, ""); err != nil {
		t.Logf("no bind mount: %v", err)
	} else {
		refused(bind, bind, pid)
		if err := unix.Unmount(bind, 0); err != nil {
			t.Error(err)
		}
	}

	// The lock of the metadata is left.
	if err := os.Remove(filepath.Join(dir, record.LockFile)); err != nil {
		t.Fatal(err)
	}
	refused(dir, dir, "process unknown")
}

// TestNetworkFolder: a folder on a network file system is refused unless told; on one that
// other machines may use, and whose locks hold there, it is opened with a warning.
func TestNetworkFolder(t *testing.T) {
	for _, test := range []struct {
		name   string
		fsType uint32
		err    error
		refuse bool
		warn   string // if it is not refused
	}{
		{"NFS", unix.NFS_SUPER_MAGIC, nil, true, ""},
		{"SMB", unix.CIFS_SUPER_MAGIC, nil, true, ""},
		{"SMB", unix.SMB2_SUPER_MAGIC, nil, true, ""},
		{"AFS", unix.AFS_FS_MAGIC, nil, true, ""},
		{"Lustre", 0x0BD00BD0, nil, true, ""},
		{"CephFS", 0x00c36400, nil, false, "type=CephFS"},
		{"GPFS", 0x47504653, nil, false, "type=GPFS"},
		{"OCFS2", 0x7461636f, nil, false, "type=OCFS2"},
		{"GFS2", 0x01161970, nil, false, "type=GFS2"},
		{"9p", 0x01021997, nil, false, "type=9p"},
		{"FUSE", 0x65735546, nil, false, "type=FUSE"},
		{"ext4", unix.EXT4_SUPER_MAGIC, nil, false, ""},
		{"unknown", 0, unix.EIO, false, "cannot tell the file system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			var logged bytes.Buffer
			o := Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&logged, nil)), SegmentBytes: testSegmentBytes,
				fsType: func(string) (uint32, error) { return test.fsType, test.err }}
			c, err := Open(ctx, o)
			if !test.refuse {
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				if said := logged.String(); !strings.Contains(said, test.warn) || test.warn == "" && strings.Contains(said, "file system") {
					t.Errorf("the log says %q", said)
				}
				return
			}
			want := fmt.Sprintf("folder %s is on a network file system (%s)", dir, test.name)
			if !errors.Is(err, cluster.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cluster.network_fs") {
				t.Fatalf("Open: %v", err)
			}
			o.NetworkFS = true
			if c, err = Open(ctx, o); err != nil {
				t.Fatal(err)
			}
			c.Close()
			if !strings.Contains(logged.String(), "network file system") {
				t.Errorf("the log says %q", logged.String())
			}
		})
	}
}

// TestFileLimit: a limit of open files that is too low is refused, with what
// to do about it.
func TestFileLimit(t *testing.T) {
	for _, test := range []struct {
		limit uint64
		want  fileLimits
	}{
		{256, fileLimits{64, 64}}, {1024, fileLimits{256, 256}}, {4096, fileLimits{1024, 512}}, {unix.RLIM_INFINITY, fileLimits{1024, 512}},
	} {
		if got, err := limitFiles(test.limit); err != nil || got != test.want {
			t.Errorf("limit %d: %+v, %v", test.limit, got, err)
		}
	}
	dir := t.TempDir()
	for _, limit := range []uint64{3, 64, 255} {
		_, err := Open(ctx, Options{Dir: dir, openFiles: limit})
		if !errors.Is(err, cluster.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("limit of open files is %d, at least 256", limit)) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("the folder holds %v", names)
	}
}

// TestFewFiles works at the lowest limit of open files, and with all of them
// taken by others: what fails does so with an error, nothing is lost.
func TestFewFiles(t *testing.T) {
	out, err := child(t, "few", t.TempDir()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fewFiles is the child of TestFewFiles.
func fewFiles(t *testing.T, dir string) {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: filesMin, Max: filesMin}); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, memTable: 64 << 10, collectEvery: 50 * time.Millisecond}
	c := openAt(t, o)
	const blobs = 300 // more files than may be open
	data := make([]byte, smallMax+1)
	rand.NewChaCha8([32]byte{1}).Read(data)
	id := func(i int) cluster.BlobID { return cluster.BlobID{Content: uint64(i), Seq: 1} }
	store := func(i int) error {
		if err := storeBlob(c.Blobs, id(i), data); err != nil {
			return err
		}
		return c.KV.Update(ctx, func(txn cluster.Txn) error {
			for k := range 20 {
				if err := txn.Set(fmt.Appendf(nil, "key%d/%d", i, k), data[:1000]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	const more = 80 // while there are none left
	stored := make([]atomic.Bool, blobs+more)
	work := func(from, to int, mayFail bool) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := from + w; i < to; i += 8 {
					err := store(i)
					if err == nil {
						stored[i].Store(true)
					} else if !mayFail || !errors.Is(err, cluster.ErrUnavailable) {
						t.Errorf("blob %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
	}
	check := func(from, to int) {
		for i := from; i < to; i++ {
			if !stored[i].Load() {
				continue
			}
			if err := readBack(c.Blobs, id(i), data); err != nil {
				t.Errorf("blob %d: %v", i, err)
			}
			if err := c.KV.View(ctx, func(r cluster.Reader) error {
				if v, err := r.Get(fmt.Appendf(nil, "key%d/19", i)); err != nil || !bytes.Equal(v, data[:1000]) {
					return fmt.Errorf("%d bytes, %w", len(v), err)
				}
				return nil
			}); err != nil {
				t.Errorf("key %d: %v", i, err)
			}
		}
	}
	var begun atomic.Bool
	worked := make(chan struct{})
	work(0, blobs, false)
	check(0, blobs)
	// Connections, say, take all that are left, and what becomes free, and go
	// away in the middle.
	var taken []*os.File
	for end := time.Now().Add(300 * time.Millisecond); ; time.Sleep(time.Millisecond) {
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			taken = append(taken, f)
		}
		if len(taken) > 0 && begun.CompareAndSwap(false, true) {
			go func() { work(blobs, blobs+more, true); close(worked) }()
		}
		if time.Now().After(end) {
			break
		}
	}
	for _, f := range taken {
		f.Close()
	}
	<-worked
	if err := c.KV.(*KV).health.Failure(); err != nil {
		t.Logf("the store took no more writes: %v", err)
	}
	c.Close()
	c = openAt(t, o)
	check(0, blobs+more)
	if err := store(blobs + more); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// TestClockJumps writes while the clock jumps, hours and years, forward and
// backward: it decides nothing in the engine.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	jumps := []time.Duration{0, -time.Hour, time.Hour, -40 * year, -year, 200 * year, year, -290 * year, 290 * year, 0}
	fs := newMem(t)
	var jump atomic.Int64
	o := memOptions(fs)
	o.collectEvery, o.markEvery = time.Millisecond, time.Millisecond
	o.now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	j := newJournal()
	for round := range 2 {
		c := openAt(t, o)
		for i := range 3 * len(jumps) {
			jump.Store(int64(jumps[i%len(jumps)]))
			if err := j.step(c, round, i); err != nil {
				t.Fatal(err)
			}
			if err := j.checkBlobs(c); err != nil {
				t.Fatalf("after a jump of %v: %v", jumps[i%len(jumps)], err)
			}
		}
		if err := c.Blobs.List(ctx, cluster.BlobID{}, func(cluster.BlobInfo) error { return nil }); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	c := openAt(t, memOptions(fs))
	if err := j.check(c); err != nil {
		t.Error(err)
	}
}
