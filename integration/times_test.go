package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFarTimes sets times beyond what 64 bits of nanoseconds and what some doors
// can tell, and wants them back, of files and directories, after a restart too.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	s.makeBucket("far")
	times := map[string]struct {
		at    unix.Timespec
		http  string // Last-Modified
		below string // a name in the bucket
	}{
		"year 3000":   {unix.Timespec{Sec: 32503680000, Nsec: 5}, "Wed, 01 Jan 3000 00:00:00 GMT", "a"},
		"year 1600":   {unix.Timespec{Sec: -11676096000, Nsec: 999_999_999}, "Sat, 01 Jan 1600 00:00:00 GMT", "b"},
		"year 1969":   {unix.Timespec{Sec: -1, Nsec: 1}, "Wed, 31 Dec 1969 23:59:59 GMT", "c"},
		"year 20000":  {unix.Timespec{Sec: 568971820800}, "Fri, 31 Dec 9999 23:59:59 GMT", "d"},
		"year -20000": {unix.Timespec{Sec: -693307382400}, "Mon, 01 Jan 0001 00:00:00 GMT", "e"},
	}
	dir := s.Mount()
	for name, c := range times {
		file, sub := filepath.Join(dir, "far", c.below), filepath.Join(dir, "far", "dir-"+c.below)
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, sub} {
			if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{c.at, c.at}, 0); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	check := func(dir string) {
		t.Helper()
		for name, c := range times {
			for _, path := range []string{filepath.Join(dir, "far", c.below), filepath.Join(dir, "far", "dir-"+c.below)} {
				var st unix.Stat_t
				if err := unix.Stat(path, &st); err != nil || st.Atim != c.at || st.Mtim != c.at {
					t.Errorf("%s of %s: atime %v, mtime %v, %v", name, path, st.Atim, st.Mtim, err)
				}
			}
			resp, err := http.Head("http://" + s.REST + "/far/" + c.below)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Last-Modified"); got != c.http {
				t.Errorf("%s: Last-Modified %q, want %q", name, got, c.http)
			}
		}
		s.AWS("s3api", "list-objects-v2", "--bucket", "far")
	}
	check(dir)
	s.OGW("umount", dir)
	s.Stop()
	s.Start()
	check(s.Mount())
	checkClean(t, s)
}
