package engines

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"
)

// TestManyGatewaysLocks has programs of two gateways' mounts lock one another out.
func TestManyGatewaysLocks(t *testing.T) { onMetadata(t, testManyGatewaysLocks) }

func testManyGatewaysLocks(t *testing.T, x *shared) {
	needMounts(t)
	x.manyGateways()
	sa := x.gateway(nil)
	sb := x.gateway(sa)
	sb.KeyID, sb.Secret = sa.KeyID, sa.Secret
	a, b := &mounted{sa, "", s3Client(t, sa)}, &mounted{sb, "", s3Client(t, sb)}
	if err := a.s3.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	a.dir = filepath.Join(a.Mount(), "bkt")
	top := b.Mount("-o", "survive")
	b.dir = filepath.Join(top, "bkt")
	t.Run("kinds", func(t *testing.T) { locksExclude(t, a, b) })
	t.Run("deadlock", func(t *testing.T) { locksDeadlock(t, a, b) })
	t.Run("processes", func(t *testing.T) { locksCount(t, a, b) })
	if t.Failed() {
		t.Logf("a:\n%s\nb:\n%s", a.Log(), b.Log())
		t.FailNow()
	}
	t.Run("survive", func(t *testing.T) { locksSurvive(t, a, b) })
	t.Run("listed", func(t *testing.T) { locksListed(t, a, b) })
	b.OGW("umount", top)
	t.Run("killed", func(t *testing.T) { locksOfTheDead(t, a, b) })
	if out := a.OGW("lock", "list"); strings.Contains(out, "held") {
		t.Errorf("left:\n%s", out)
	}
	if out := a.OGW("check"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
		t.Errorf("check:\n%s", out)
	}
}

// kindsOfLocks are the ways of programs to lock a whole file, by fcntl's type.
var kindsOfLocks = map[string]func(f *os.File, typ int16, wait bool) error{
	"flock": func(f *os.File, typ int16, wait bool) error {
		how := map[int16]int{unix.F_RDLCK: unix.LOCK_SH, unix.F_WRLCK: unix.LOCK_EX, unix.F_UNLCK: unix.LOCK_UN}[typ]
		if !wait {
			how |= unix.LOCK_NB
		}
		return unix.Flock(int(f.Fd()), how)
	},
	"fcntl": func(f *os.File, typ int16, wait bool) error {
		cmd := unix.F_SETLK
		if wait {
			cmd = unix.F_SETLKW
		}
		return unix.FcntlFlock(f.Fd(), cmd, &unix.Flock_t{Type: typ})
	},
	"ofd": func(f *os.File, typ int16, wait bool) error {
		cmd := unix.F_OFD_SETLK
		if wait {
			cmd = unix.F_OFD_SETLKW
		}
		return unix.FcntlFlock(f.Fd(), cmd, &unix.Flock_t{Type: typ})
	},
}

func openLocked(t *testing.T, m *mounted, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(m.path(name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func locksExclude(t *testing.T, a, b *mounted) {
	for name, lock := range kindsOfLocks {
		fa, fb := openLocked(t, a, name), openLocked(t, b, name)
		if err := errors.Join(lock(fa, unix.F_RDLCK, false), lock(fb, unix.F_RDLCK, false)); err != nil {
			t.Fatalf("%s: two readers: %v", name, err)
		}
		if err := lock(fb, unix.F_WRLCK, false); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%s: a writer beside a reader: %v", name, err)
		}
		if err := errors.Join(lock(fb, unix.F_UNLCK, false), lock(fa, unix.F_WRLCK, false)); err != nil {
			t.Fatalf("%s: a writer: %v", name, err)
		}
		got := make(chan error, 1)
		go func() { got <- lock(fb, unix.F_WRLCK, true) }()
		select {
		case err := <-got:
			t.Errorf("%s: both write, %v", name, err)
		case <-time.After(300 * time.Millisecond):
		}
		begin := time.Now()
		if err := errors.Join(lock(fa, unix.F_UNLCK, false), <-got); err != nil {
			t.Errorf("%s: after the writer: %v", name, err)
		}
		t.Logf("%s: handed over in %v", name, time.Since(begin))
		for range 10 {
			if err := errors.Join(fb.Close(), lock(fa, unix.F_WRLCK, false), lock(fa, unix.F_UNLCK, false)); err != nil {
				t.Fatalf("%s: right after the close: %v", name, err)
			}
			fb = openLocked(t, b, name)
			if err := lock(fb, unix.F_WRLCK, false); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		fa.Close()
		fb.Close()
	}
}

// locksDeadlock has two wait for one another, in two files.
func locksDeadlock(t *testing.T, a, b *mounted) {
	lock := kindsOfLocks["fcntl"]
	a1, a2 := openLocked(t, a, "one"), openLocked(t, a, "two")
	b1, b2 := openLocked(t, b, "one"), openLocked(t, b, "two")
	for range 5 {
		if err := errors.Join(lock(a1, unix.F_WRLCK, false), lock(b2, unix.F_WRLCK, false)); err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 2)
		go func() { ends <- errors.Join(lock(a2, unix.F_WRLCK, true), lock(a2, unix.F_UNLCK, false)) }()
		go func() { ends <- errors.Join(lock(b1, unix.F_WRLCK, true), lock(b1, unix.F_UNLCK, false)) }()
		if err := <-ends; !errors.Is(err, unix.EDEADLK) {
			t.Fatalf("the first ends with %v", err)
		}
		// Either may be the one: both give up what they had.
		if err := errors.Join(lock(a1, unix.F_UNLCK, false), lock(b2, unix.F_UNLCK, false)); err != nil {
			t.Fatal(err)
		}
		if err := <-ends; err != nil && !errors.Is(err, unix.EDEADLK) {
			t.Fatal(err)
		}
	}
}

// locksCount has 8 processes at two mounts count under one lock.
func locksCount(t *testing.T, a, b *mounted) {
	const processes, rounds = 8, 15
	if err := errors.Join(os.WriteFile(a.path("count"), []byte("0\n"), 0o644), os.WriteFile(a.path("lock"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range processes {
		dir := []*mounted{a, b}[i%2].dir
		wg.Go(func() {
			// Not Cmd.Dir: the child would wait for the mount while it has this process stand still,
			// and with it what the gateway waits for.
			cmd := exec.Command("sh", "-c", `cd "$1" && for i in $(seq `+strconv.Itoa(rounds)+`); do
				flock lock sh -c 'read n <count; echo $((n+1)) >count' || exit 1
			done`, "sh", dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	t.Logf("%d turns of %d processes in %v", processes*rounds, processes, time.Since(begin))
	for _, m := range []*mounted{a, b} {
		if got, err := os.ReadFile(m.path("count")); err != nil || string(got) != strconv.Itoa(processes*rounds)+"\n" {
			t.Errorf("%q, want %d, %v", got, processes*rounds, err)
		}
	}
}

// locksSurvive kills and stops the gateway of a mount that survives: the next server has the
// lock of the program, which ends with it.
func locksSurvive(t *testing.T, a, b *mounted) {
	if err := os.WriteFile(a.path("kept"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	try := func() error { return exec.Command("flock", "-n", a.path("kept"), "true").Run() }
	h := hold(t, b.path("kept"), "flock 3")
	if try() == nil {
		t.Error("it is not locked")
	}
	b.Kill()
	b.Start()
	if try() == nil {
		t.Error("it is not locked when the next server is there")
	}
	b.Stop()
	if try() == nil {
		t.Error("it is not locked while there is no server")
	}
	b.Start()
	time.Sleep(15 * time.Second) // those before are put out
	if try() == nil {
		t.Error("it is not locked when the servers before have been put out")
	}
	if _, err := h.read(); err != nil {
		t.Error(err)
	}
	if err := try(); err != nil {
		t.Errorf("after the program: %v", err)
	}
}

// locksListed looks at what the operator sees of the other gateway.
func locksListed(t *testing.T, a, b *mounted) {
	f := openLocked(t, b, "listed")
	if err := kindsOfLocks["flock"](f, unix.F_WRLCK, false); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*mounted{a, b} {
		if out := m.With(t).OGW("lock", "list"); !strings.Contains(out, "bkt/listed") || !strings.Contains(out, "fuse") || strings.Contains(out, ", process ") != (m == a) {
			t.Errorf("%s", out)
		}
	}
	f.Close()
}

// locksOfTheDead kills a gateway while a program of its mount has a lock: who waits for it
// at the other gateway gets it once the gateway is put out.
func locksOfTheDead(t *testing.T, a, b *mounted) {
	b.dir = filepath.Join(b.With(t).Mount(), "bkt")
	if err := os.WriteFile(a.path("dead"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	hold(t, b.path("dead"), "flock 3")
	waiter := exec.Command("flock", "-w", "60", a.path("dead"), "true")
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	b.Kill()
	begin := time.Now()
	if err := waiter.Wait(); err != nil {
		t.Errorf("what a dead gateway had: %v", err)
	}
	if took := time.Since(begin); took < 5*time.Second {
		t.Errorf("it had the lock %v after the kill: nobody knew that the gateway is gone", took)
	} else {
		t.Logf("handed on after %v", took)
	}
	b.Start()
}
