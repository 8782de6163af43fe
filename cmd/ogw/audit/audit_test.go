package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, change func(*Config)) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	c := Config{Admin: true, Access: true, Data: true, File: path, FileBytes: 1 << 20, Keep: 3, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, path
}

func act(operation, target string) Event {
	return Event{Class: Admin, Door: "s3", Operation: operation, Target: target, UID: NoUID, From: "192.0.2.1:1", Result: OK}
}

func refusal(from string) Event {
	return Event{Class: Data, Door: "s3", Operation: "GetObject", UID: NoUID, From: from, Result: Refused}
}

func lines(t *testing.T, path string, keep int) (out []Line) {
	t.Helper()
	if err := Read(context.Background(), path, keep, false, func(_ []byte, l *Line) error {
		out = append(out, *l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever clients send is one field of one line, in printable characters,
// and different things are written differently.
func TestLineInjection(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{"a", "a\nb", `a\nb`, "a\r\n{\"class\":\"admin\"}", "\x1b[2J", "a\u0085b", "\u202egpj.exe", "\xff\xfe",
		"\\", `\\`, `"`, `","result":"ok","x":"`, "a\x00b", "\u2028", "\ufffd", strings.Repeat("\n", 5000), strings.Repeat("é", 5000)} {
		e := act("PutObject", s)
		e.User, e.Agent, e.Detail, e.From = s, s, s, s
		b := encode(&e)
		if bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' || !utf8.Valid(b) {
			t.Errorf("%.40q: not one line: %.200q", s, b)
		}
		var l Line
		if err := json.Unmarshal(b, &l); err != nil || l.Class != Admin || l.Result != OK {
			t.Errorf("%.40q: %v %+v", s, err, l)
		}
		if strings.ContainsFunc(l.Target, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e }) {
			t.Errorf("%.40q is not printable: %.40q", s, l.Target)
		}
		if len(l.Target) > maxTarget || len(l.User) > maxField || len(l.Agent) > maxField {
			t.Errorf("%.40q: %d and %d bytes", s, len(l.Target), len(l.User))
		}
		if other, ok := seen[l.Target]; ok {
			t.Errorf("%.40q and %.40q are both %.40q", s, other, l.Target)
		}
		seen[l.Target] = s
	}
}

func TestRotation(t *testing.T) {
	l, path := open(t, func(c *Config) { c.FileBytes = 2000 })
	for i := range 200 {
		l.Record(act("CreateBucket", fmt.Sprint(i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
		info, _ := f.Info()
		if info.Size() > 2000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v", f.Name(), info.Size(), info.Mode())
		}
	}
	if fmt.Sprint(names) != "[audit.log audit.log.1 audit.log.2 audit.log.3]" {
		t.Error(names)
	}
	got := lines(t, path, 3)
	for i, g := range got { // the last ones, in order
		if want := fmt.Sprint(200 - len(got) + i); g.Target != want {
			t.Fatalf("line %d of %d is %s, want %s", i, len(got), g.Target, want)
		}
	}
	if len(got) < 30 {
		t.Errorf("only %d lines", len(got))
	}
}

// A rotation that cannot be ends no old file, however often it is tried, and
// one that was cut off is brought to its end.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := func() (out []string) {
		for _, name := range []string{path, Numbered(path, 1), Numbered(path, 2), Numbered(path, 3), Numbered(path, 4)} {
			b, _ := os.ReadFile(name)
			out = append(out, strings.TrimSpace(string(b)))
		}
		return out
	}
	for i := range 4 {
		write(Numbered(path, i), fmt.Sprint(i))
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot make a file that cannot be renamed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	s, err := openFile(path, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.tried = time.Time{}
		if err := s.write(Admin, []byte("+")); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(all()); got != "[0+++++ 1 2 3 ]" {
		t.Fatal(got)
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	s.tried = time.Time{}
	if err := errors.Join(s.write(Admin, []byte("n")), s.close()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all()); got != "[n 0+++++ 1 2 ]" {
		t.Fatal(got)
	}
	// Killed after FILE was put aside, and after the first of the old ones moved.
	if err := errors.Join(os.Rename(path, s.aside()), os.Rename(Numbered(path, 2), Numbered(path, 3))); err != nil {
		t.Fatal(err)
	}
	if s, err = openFile(path, 1, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all()); got != "[ n 0+++++ 1 ]" {
		t.Fatal(got)
	}
}

// What stands in the place of the file and cannot be it ends the start.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"link":      func(p string) error { return os.Symlink(victim, p) },
		"dangling":  func(p string) error { return os.Symlink(filepath.Join(dir, "none"), p) },
		"hard link": func(p string) error { return os.Link(victim, p) },
		"pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder":    func(p string) error { return os.Mkdir(p, 0o700) },
		"writable": func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o666))
		},
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Config{Admin: true, File: path, FileBytes: 1 << 20, Keep: 1, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if b, _ := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the victim holds %q", b)
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was made behind the link")
	}
}

// A full medium stops nothing; what is missing is reported afterwards, and the
// half line that it left spoils no other.
func TestFull(t *testing.T) {
	l, path := open(t, nil)
	l.Record(act("CreateBucket", "before"))
	s := l.sink.(*file)
	good := s.f
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	s.f = full
	l.Record(act("CreateBucket", "during"))
	if _, err := good.WriteString(`{"half`); err != nil {
		t.Fatal(err)
	}
	s.f, s.torn = good, true
	l.Record(act("CreateBucket", "after"))
	_, _ = full.Close(), l.Close()
	var got []string
	for _, x := range lines(t, path, 3) {
		got = append(got, fmt.Sprint(x.Operation, " ", x.Target, " ", x.Count))
	}
	if want := "[CreateBucket before 0 Lost  1 CreateBucket after 0]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if st := l.Stats(); st.Failed != 1 || st.Lines[Admin] != 2 {
		t.Errorf("%+v", st)
	}
}

// Refusals are bounded for each client and in all, acts are not, and what is
// left out is counted.
func TestRefusals(t *testing.T) {
	l, path := open(t, nil)
	for i := range 5000 {
		l.Record(refusal(fmt.Sprintf("192.0.2.7:%d", i)))
		l.Record(refusal(fmt.Sprintf("[2001:db8::%x]:1", i)))
	}
	l.Record(refusal("192.0.2.8:1"))
	for i := range 500 {
		l.Record(act("CreateBucket", fmt.Sprint(i)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	count := map[string]uint64{}
	for _, x := range lines(t, path, 3) {
		switch x.Operation {
		case "CreateBucket":
			count["acts"]++
		case "Suppressed":
			count[x.From+" out"] = x.Count
		default:
			count[client(x.From)]++
		}
	}
	for from, want := range map[string]uint64{"192.0.2.7": clientLines, "192.0.2.7 out": 5000 - clientLines,
		"2001:db8::/64": clientLines, "2001:db8::/64 out": 5000 - clientLines, "192.0.2.8": 1, "acts": 500} {
		if count[from] != want {
			t.Errorf("%s: %d, want %d", from, count[from], want)
		}
	}
}

func TestRefusalsOfMany(t *testing.T) {
	l, path := open(t, nil)
	for i := range 100_000 {
		l.Record(refusal(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)))
	}
	if n := len(l.limit.clients); n > allLines {
		t.Errorf("%d clients are remembered", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := lines(t, path, 3)
	if len(got) != allLines+1 || got[allLines].From != "others" || got[allLines].Count != 100_000-allLines {
		t.Errorf("%d lines, the last %+v", len(got), got[len(got)-1])
	}
}

func TestWindow(t *testing.T) {
	var l limiter
	start := time.Now()
	l.turn(start, false)
	for range clientLines + 2 {
		l.admit("192.0.2.1:1")
	}
	if out := l.turn(start.Add(window-time.Second), false); len(out) != 0 {
		t.Errorf("too early: %v", out)
	}
	out := l.turn(start.Add(window), false)
	if len(out) != 1 || out[0].Count != 2 || out[0].From != "192.0.2.1" {
		t.Errorf("%+v", out)
	}
	if !l.admit("192.0.2.1:1") {
		t.Error("nothing is admitted in the next window")
	}
}

func TestOff(t *testing.T) {
	l, err := Open(Config{Logger: slog.New(slog.DiscardHandler)})
	if l != nil || err != nil {
		t.Fatal(l, err)
	}
	l.Record(act("CreateBucket", "a"))
	l.Reopen()
	if l.Wants(Admin) || l.Close() != nil || l.Stats().Failed != 0 {
		t.Error("a log that is off does something")
	}
	l, path := open(t, func(c *Config) { c.Data = false })
	e := act("GetObject", "a")
	e.Class = Data
	l.Record(e)
	e.Result = Refused
	l.Record(e)
	_ = l.Close()
	if got := lines(t, path, 3); len(got) != 1 || got[0].Class != Access {
		t.Errorf("%+v", got)
	}
}

// Renamed from outside, a new file is begun; who follows sees both.
func TestReopenAndFollow(t *testing.T) {
	l, path := open(t, func(c *Config) { c.FileBytes = 3000 })
	l.Record(act("CreateBucket", "0"))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var seen atomic.Int64
	done := make(chan error, 1)
	go func() {
		done <- Read(ctx, path, 3, true, func(_ []byte, x *Line) error {
			if want := fmt.Sprint(seen.Load()); x.Target != want {
				return fmt.Errorf("%s, want %s", x.Target, want)
			}
			if seen.Add(1) == 6 {
				cancel()
			}
			return nil
		})
	}()
	for i := 1; i < 6; i++ {
		for seen.Load() < int64(i) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if i == 3 {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			l.Reopen()
		}
		l.Record(act("CreateBucket", fmt.Sprint(i)))
	}
	if err := <-done; err != nil || seen.Load() != 6 {
		t.Errorf("%v after %d lines", err, seen.Load())
	}
	_ = l.Close()
}

func TestSyslog(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "log")
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	gram, err := net.ListenPacket("unixgram", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer gram.Close()
	for address, server := range map[string]net.PacketConn{"udp://" + udp.LocalAddr().String(): udp, "unix://" + sock: gram} {
		l, _ := open(t, func(c *Config) { c.Syslog = address })
		l.Record(act("CreateBucket", "a\nb"))
		b := make([]byte, 4096)
		_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, _, err := server.ReadFrom(b)
		if text := string(b[:n]); err != nil || !strings.HasPrefix(text, "<85>1 ") || !strings.Contains(text, " ogw ") ||
			!strings.Contains(text, `"target":"a\\nb"`) || strings.Contains(text, "\n") {
			t.Errorf("%s: %v %q", address, err, text)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "local:", "http://x:1", "udp://x", "unix://x/y", "tcp://:1"} {
		if _, _, err := ParseSyslog(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A server that does not take lines neither stops nor fills the process.
func TestSyslogStuck(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l, _ := open(t, func(c *Config) { c.Syslog = "tcp://" + server.Addr().String() })
	big := strings.Repeat("x", 2000)
	begin := time.Now()
	for range 20_000 {
		l.Record(act("CreateBucket", big))
	}
	if took := time.Since(begin); took > sendTimeout {
		t.Errorf("20,000 lines took %v", took)
	}
	if l.Stats().Failed == 0 {
		t.Error("no line is missing")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	begin = time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 2*drainTime+2*sendTimeout {
		t.Errorf("closing took %v", took)
	}
}
