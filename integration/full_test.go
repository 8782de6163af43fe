package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

// TestDiskFull fills the disk below the data folder: writes fail with each
// door's own error, what was acknowledged stays, deletes work, space comes
// back, and nothing is half-written.
func TestDiskFull(t *testing.T) {
	const size = 384 << 20
	disk := smallDisk(t, size)
	s := newServer(t, options{Data: filepath.Join(disk, "data")})
	t.Cleanup(s.Stop) // before the unmount
	s.makeBucket("full")
	mnt := s.Mount()

	body := strings.Repeat("0123456789abcdef", 4<<20/16)
	rest := doors.NewREST(s.REST)
	put := func(i int) error { return rest.Write(fmt.Sprintf("full/%d", i), body) }
	var written int
	var full error
	for written = 0; written < 2*size/len(body); written++ {
		if full = put(written); full != nil {
			break
		}
	}
	if full == nil {
		t.Fatalf("wrote twice the size of the disk without an error")
	}
	if !strings.Contains(full.Error(), "507") {
		t.Errorf("REST on a full disk: %v, want 507", full)
	}
	t.Logf("full after %d objects of 4 MiB: %v", written, full)

	out, err := s.Try("/usr/bin/aws", "--endpoint-url", "http://"+s.S3, "s3api", "put-object",
		"--bucket", "full", "--key", "s3", "--body", bigFile(t, 8<<20))
	if err == nil {
		t.Errorf("S3 PUT on a full disk succeeded")
	} else if !strings.Contains(out, "space") && !strings.Contains(out, "507") && !strings.Contains(out, "Full") {
		t.Errorf("S3 PUT on a full disk says: %s", out)
	}
	err = writeSynced(filepath.Join(mnt, "full/fuse"), body+body)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("FUSE on a full disk: %v, want ENOSPC", err)
	}
	for i := range written {
		if got, err := rest.Read(fmt.Sprintf("full/%d", i)); err != nil || got != body {
			t.Fatalf("object %d on a full disk: %d bytes, %v", i, len(got), err)
		}
	}
	for i := range written {
		if err := rest.Delete(fmt.Sprintf("full/%d", i)); err != nil {
			t.Fatalf("delete on a full disk: %v", err)
		}
	}
	testenv.Eventually(t, "space to come back", func() error { return put(0) })
	checkClean(t, s)
	s.Stop()
	s.Start()
	if got, err := rest.Read("full/0"); err != nil || got != body {
		t.Errorf("after the restart: %d bytes, %v", len(got), err)
	}
}

// TestDiskFullNeighbour lets another program take the last byte of the disk:
// every door still deletes, also after a start on the full disk, and writes go
// on without a restart when the other gives the space back.
func TestDiskFullNeighbour(t *testing.T) {
	disk := smallDisk(t, 256<<20)
	s := newServer(t, options{Data: filepath.Join(disk, "data")})
	t.Cleanup(s.Stop) // before the unmount
	s.makeBucket("full")
	body := strings.Repeat("0123456789abcdef", 100<<10/16)
	rest := doors.NewREST(s.REST)
	path := func(i int) string { return fmt.Sprintf("full/%d", i) }
	for i := range 60 {
		if err := rest.Write(path(i), body); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the reserve", func() error {
		_, err := os.Stat(filepath.Join(s.Data, "reserve"))
		return err
	})
	neighbour := filepath.Join(disk, "neighbour")
	fill := func() {
		t.Helper()
		f, err := os.OpenFile(neighbour, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for n := 1 << 20; n >= 512; {
			if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
				n /= 2
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	testenv.Eventually(t, "writes to be refused", func() error {
		err := rest.Write(path(100), body)
		if err == nil {
			return errors.New("a PUT succeeded")
		}
		if !strings.Contains(err.Error(), "507") {
			t.Errorf("REST on a full disk: %v, want 507", err)
		}
		return nil
	})
	for i := range 10 {
		if got, err := rest.Read(path(i)); err != nil || got != body {
			t.Fatalf("object %d on a full disk: %d bytes, %v", i, len(got), err)
		}
		if err := rest.Delete(path(i)); err != nil {
			t.Fatalf("delete on a full disk: %v", err)
		}
	}
	if err := s.s3Door().Delete("full/10"); err != nil {
		t.Errorf("delete by S3 on a full disk: %v", err)
	}
	s.Stop()
	fill() // what the stop gave back
	s.Start()
	mnt := s.Mount()
	fill()
	for i := 11; i < 30; i++ {
		if err := os.Remove(filepath.Join(mnt, "full", fmt.Sprint(i))); err != nil {
			t.Fatalf("unlink on a full disk: %v", err)
		}
	}
	for i := 30; i < 50; i++ {
		if err := rest.Delete(path(i)); err != nil {
			t.Fatalf("delete on a full disk, after a start: %v", err)
		}
	}
	if err := os.Remove(neighbour); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "space to come back", func() error { return rest.Write(path(200), body) })
	for i := 50; i < 60; i++ {
		if got, err := rest.Read(path(i)); err != nil || got != body {
			t.Errorf("object %d: %d bytes, %v", i, len(got), err)
		}
	}
	checkClean(t, s)
}

// smallDisk mounts one of so many bytes.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	disk := filepath.Join(testenv.TempDir(t), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatalf("mounting a small tmpfs (the test needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmounting the disk: %v", err)
		}
	})
	return disk
}

func bigFile(t *testing.T, n int) string {
	t.Helper()
	name := filepath.Join(testenv.TempDir(t), "big")
	if err := os.WriteFile(name, make([]byte, n), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
