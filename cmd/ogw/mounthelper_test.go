package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"ogw/cmd/ogw/mounts"
	"ogw/cmd/ogw/server"
	"ogw/fusemount"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMountOptions(t *testing.T) {
	var o mountOptions
	err := o.parse(`rw,noauto,_netdev,x-systemd.automount,X-mount.mkdir,comment=a b,allow_other,subtree=photos/a\,b,dir=/srv/ogw`, false)
	if err == nil {
		err = o.parse("set=log.level=debug,set=cluster.cache=64MiB,noexec,noatime,nosymfollow,attr_timeout=0.5,wait=2s,metrics=127.0.0.1:1,ro", false)
	}
	half := 0.5
	want := mountOptions{dir: "/srv/ogw", set: []string{"log.level=debug", "cluster.cache=64MiB"}, metrics: "127.0.0.1:1", wait: 2 * time.Second,
		flags: []string{"rw", "allow_other", "noexec", "noatime", "nosymfollow", "ro"},
		fixed: []string{"subtree", "dir", "set", "set", "attr_timeout", "wait", "metrics"}}
	want.mount.AllowOther, want.mount.ReadOnly, want.mount.Subtree = true, true, "photos/a,b"
	want.mount.Flags, want.mount.AttrTimeout = []string{"noexec", "noatime", "nosymfollow"}, &half
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v %v\nwant %+v", o, err, want)
	}
	for list, say := range map[string]string{
		"allow_othr": `did you mean "allow_other"`, "ro=1": "takes no value", "subtree": "needs a value: subtree=PATH",
		"attr_timeout=-1": "not a number of seconds", "attr_timeout=1e9": "not a number of seconds", "wait=long": "not a time", "wait=0s": "not a time",
		"remount=ro": "unknown mount option", "uid=5": `unknown mount option "uid"`,
		"strictatime": "as relatime says", "lazytime": "always stored later",
	} {
		if err := new(mountOptions).parse(list, false); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %s", list, err, say)
		}
	}
	if err := new(mountOptions).parse("uid=5,ro", true); err != nil {
		t.Errorf("sloppy: %v", err)
	}
	o = mountOptions{dir: "/a"}
	if err := o.source("/b"); err == nil {
		t.Error("two data folders are accepted")
	}
	o = mountOptions{}
	if err := o.source("ogw"); err != nil || o.dir != "" || o.mount.Source != "ogw" {
		t.Errorf("%v %+v", err, o)
	}
}

func TestHelperCall(t *testing.T) {
	app := newApp(&environment{})
	for in, want := range map[string]string{
		"/sbin/mount.fuse.ogw /srv /mnt -o rw,_netdev": "/sbin/mount.fuse.ogw mount --helper -o rw,_netdev -- /srv /mnt",
		"mount.ogw ogw /mnt -sv -t fuse.ogw -o ro":     "mount.ogw mount --helper --sloppy -o ro -- ogw /mnt",
		"mount.ogw -f -n /srv /mnt":                    "mount.ogw mount --helper --fake -- /srv /mnt",
		"ogw /srv /mnt -o rw":                          "ogw mount --helper -o rw -- /srv /mnt",
		"ogw mount /srv /mnt -o rw":                    "ogw mount /srv /mnt -o rw",
		"ogw whereis a/b --json":                       "ogw whereis a/b --json",
		"mount.ogw /srv":                               "error: takes a source and a folder",
		"mount.ogw /srv /mnt -o":                       "error: -o needs a value",
		"mount.ogw /srv /mnt -N /proc/1/ns/mnt":        "error: nsenter",
		"mount.ogw /srv /mnt --bogus":                  "error: unknown option --bogus",
	} {
		out, err := helperCall(app, strings.Fields(in))
		if say, isErr := strings.CutPrefix(want, "error: "); isErr {
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("%s: %v, want %s", in, err, say)
			}
		} else if got := strings.Join(out, " "); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
	}
}

// Lines of fstab work with mount(8), through a link in /sbin, in a mount
// namespace of its own.
func TestFstab(t *testing.T) {
	needFUSE(t)
	if os.Geteuid() != 0 {
		t.Skip("mount(8) from another fstab needs root")
	}
	w := newWorld(t)
	mnt, sub := w.mkdir("mnt"), w.mkdir("with space")
	data := filepath.Join(w.dir, "ogw-data")
	w.write("fstab", fmt.Sprintf("%s %s fuse.ogw allow_other,noauto,_netdev,x-systemd.automount 0 0\n%s %s ogw ro,nosuid,nodev,allow_other,subtree=photos 0 0\n",
		data, mnt, data, strings.ReplaceAll(sub, " ", `\040`)))
	w.write("script", fmt.Sprintf(`set -eu
ogw=%s
say() { echo "FAIL: $*"; exit 1; }
refused() { want=$1; shift; if out=$("$@" 2>&1); then say "accepted: $*"; fi; case $out in *"$want"*) ;; *) say "$*: $out";; esac; }
table() { grep -c " $PWD/.* - fuse.ogw " /proc/self/mountinfo || true; }
gone() { for i in $(seq 300); do "$ogw" status 2>/dev/null | grep -q "none serves" && return; sleep 0.1; done; say "the process stays"; }
mount -t tmpfs none /sbin
ln -s "$ogw" /sbin/mount.fuse.ogw
ln -s "$ogw" /sbin/mount.ogw

mount -T fstab mnt
grep -q "mnt rw,relatime - fuse.ogw $PWD/ogw-data .*allow_other" /proc/self/mountinfo || say "$(cat /proc/self/mountinfo)"
mkdir -p mnt/photos; echo hello > mnt/photos/f
cp "$(command -v id)" mnt/photos/id; chown 0:0 mnt/photos/id; chmod 4755 mnt/photos/id
test "$(setpriv --reuid 65534 --clear-groups mnt/photos/id -u)" = 0 || say "suid has no effect"
mknod mnt/photos/null c 1 3; echo gone > mnt/photos/null || say "dev has no effect"
mount -T fstab "with space"
grep -q "with.*space ro,nosuid,nodev,relatime - fuse.ogw" /proc/self/mountinfo || say "$(cat /proc/self/mountinfo)"
test "$(setpriv --reuid 65534 --clear-groups "with space/id" -u)" = 65534 || say "suid where it is forbidden"
test "$(cat "with space/f")" = hello || say "subtree"
refused "Read-only" touch "with space/g"
refused "mounted already" mount -T fstab mnt
mount -a -T fstab
test "$(table)" = 2 || say "$(table) mounts"
flags() { sed -n "s|.* $PWD/$1 \([^ ]*\) - fuse.ogw.*|\1|p" /proc/self/mountinfo; }
mount -o remount,ro mnt
test "$(flags mnt)" = ro,relatime || say "after remount,ro: $(flags mnt)"
refused "Read-only" touch mnt/photos/f
test "$(cat mnt/photos/f)" = hello || say "reading after remount,ro"
mount -o remount,rw,nosuid,noatime mnt
test "$(flags mnt)" = rw,nosuid,noatime || say "after remount,rw: $(flags mnt)"
touch mnt/photos/f
sleep 10 >> mnt/photos/f & writer=$!
refused "busy" mount -o remount,ro mnt
kill $writer; wait $writer || true
mount -T fstab -o remount mnt
test "$(flags mnt)" = rw,relatime || say "after remount: $(flags mnt)"
mount -o remount,nodiratime mnt
test "$(flags mnt)" = rw,nodiratime,relatime || say "after remount,nodiratime: $(flags mnt)"
mount -o remount,diratime mnt
"$ogw" mount -o remount,ro,nosymfollow mnt
"$ogw" mount -o remount,rw mnt
test "$(flags mnt)" = rw,relatime,nosymfollow || say "after remount,nosymfollow: $(flags mnt)"
"$ogw" mount -o remount,symfollow mnt
refused "sync" mount -o remount,sync mnt
mount -o remount,allow_other mnt # it has it
refused "survive: umount and mount again" "$ogw" mount -o remount,survive mnt
refused "not a mount of ogw" "$ogw" mount -o remount,ro .
"$ogw" mount -o remount,noexec mnt
test "$(flags mnt)" = rw,noexec,relatime || say "after ogw mount: $(flags mnt)"
mount -o remount,rw "$PWD/with space"
touch "with space/f"
umount mnt
test "$(cat "with space/f")" = hello || say "the second mount ended with the first"
fusermount3 -u "with space"
gone

refused "unknown mount option" mount -t fuse.ogw ogw-data mnt -o bogus
refused "does not exist" mount -t fuse.ogw ogw-data nowhere
refused "name the data folder" mount -t fuse.ogw none mnt
refused "nowhere: no such file" mount -t fuse.ogw ogw-data mnt -o subtree=nowhere
refused "waited 100ms" mount -t fuse.ogw ogw-data mnt -o wait=100ms
mount -f -t fuse.ogw ogw-data mnt
test "$(table)" = 0 || say "a fake mount mounts"

mount -T fstab mnt
kill -9 "$("$ogw" status --json | sed -n 's/.*"pid": \([0-9]*\),/\1/p')"
# What was on its way by io_uring when the server died is aborted first.
for i in $(seq 100); do ls mnt 2>&1 | grep -q "not connected" && break; sleep 0.1; done
refused "not connected" ls mnt
mount -T fstab mnt
test "$(cat mnt/photos/f)" = hello || say "after a crash"
umount mnt
gone
`, binary))
	c := exec.Command("unshare", "-m", "sh", "script")
	c.Dir = w.dir
	c.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := c.CombinedOutput(); err != nil {
		log, _ := os.ReadFile(w.data(server.MountLog))
		t.Errorf("%v\n%s\n%s", err, out, log)
	}
}

func TestMountInBackground(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	mnt := w.mkdir("mnt")
	port := freePort(t)
	out := w.ok("mount", "-b", "--metrics", port, "-o", "attr_timeout=1", mnt)
	if !strings.Contains(out, "in the background") {
		t.Errorf("%s", out)
	}
	if err := os.WriteFile(mnt+"/f", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(mnt+"/d/e", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Rmdir(mnt + "/d"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + port + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, want := range []string{`ogw_fuse_request_seconds_count{operation="create"} 1`, `ogw_fuse_errors_total{error="ENOTEMPTY",operation="rmdir"} 1`, "ogw_fuse_mounts 1"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	if resp, err := http.Get("http://" + port + "/v1/status"); err != nil || resp.StatusCode != 404 {
		t.Errorf("the metrics' address serves more: %v %v", resp, err)
	}
	w.ok("umount", mnt)
	// The process has ended with its last mount, and the folder is at rest.
	if out := w.ok("status"); !strings.Contains(out, "none serves") {
		t.Errorf("after umount: %s", out)
	}
	w.ok("mount", "-b", mnt)
	if got := readFile(t, mnt+"/f"); got != "text" {
		t.Errorf("%q", got)
	}
	w.ok("umount", mnt)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"mount", "-b", w.dir + "/none"}, exitUsage, "does not exist"},
		{[]string{"mount", "-b", "-f", mnt}, exitUsage, "exclude each other"},
		{[]string{"mount", "-b", "--metrics", "nowhere", mnt}, exitFailure, "metrics"},
		{[]string{"mount", "-o", "ro,bogus", mnt}, exitUsage, "bogus"},
	} {
		if _, errs, code := w.ogw(c.args...); code != c.code || !strings.Contains(errs, c.say) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %s, want %d %s", c.args, code, errs, c.code, c.say)
		}
	}
}

// freePort returns an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// With --foreground the command stays, whoever makes the mount.
func TestMountForeground(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	mnt := w.mkdir("mnt")
	w.serve(anyPort...)
	if _, errs, code := w.ogw("mount", "--metrics", "127.0.0.1:0", mnt); code != exitUsage || !strings.Contains(errs, "admin API") {
		t.Errorf("%d %s", code, errs)
	}
	for _, end := range []func(*os.Process){
		func(p *os.Process) { _ = p.Signal(syscall.SIGINT) },
		func(*os.Process) { w.ok("umount", mnt) },
	} {
		ready, said := notifySocket(t)
		c := w.command("mount", "-f", mnt)
		c.Env = append(c.Env, "NOTIFY_SOCKET="+ready)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if got := said(); got != "READY=1" || !fusemount.IsMount(mnt) {
			t.Errorf("%q, mounted %v", got, fusemount.IsMount(mnt))
		}
		end(c.Process)
		if err := c.Wait(); err != nil || fusemount.IsMount(mnt) {
			t.Errorf("%v, mounted %v", err, fusemount.IsMount(mnt))
		}
	}
}

// notifySocket is systemd's side of sd_notify.
func notifySocket(t *testing.T) (path string, said func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path, func() string {
		t.Helper()
		_ = l.SetReadDeadline(time.Now().Add(endLimit))
		b := make([]byte, 100)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// What a killed or stopped server had mounted, the next one mounts again; what was
// unmounted since stays so.
func TestRemountAfterEnd(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	ready, said := notifySocket(t)
	w.env = []string{"NOTIFY_SOCKET=" + ready}
	d := w.serve(anyPort...)
	if got := said(); got != "READY=1" {
		t.Errorf("%q", got)
	}
	mnt, sub, off := w.mkdir("mnt"), w.mkdir("sub"), w.mkdir("off")
	d.put("/photos/a", "hello")
	w.ok("mount", mnt)
	w.ok("mount", "--subtree", "photos", "--read-only", sub)
	w.ok("mount", off)
	d.signal(syscall.SIGKILL)
	d.wait(endLimit)
	if err := kernelUnmount(off, false); err != nil {
		t.Fatal(err)
	}
	d = w.serve(anyPort...)
	if got := readFile(t, mnt+"/photos/a") + readFile(t, sub+"/a"); got != "hellohello" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(sub+"/c", nil, 0o644); err == nil {
		t.Error("a read-only mount takes writes")
	}
	if fusemount.IsMount(off) {
		t.Error("mounted again what somebody unmounted")
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if fusemount.IsMount(mnt) {
		t.Error("a stopped server left its mount")
	}
	d = w.serve(anyPort...)
	if got := readFile(t, mnt+"/photos/a"); got != "hello" || fusemount.IsMount(off) {
		t.Errorf("after an orderly end: %q, mounted again what somebody unmounted: %v", got, fusemount.IsMount(off))
	}
	w.ok("umount", mnt)
	w.ok("umount", sub)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	if _, err := os.Stat(w.data(mounts.RecordName)); !os.IsNotExist(err) {
		t.Errorf("the record is left: %v", err)
	}
	w.serve(anyPort...)
	if fusemount.IsMount(mnt) {
		t.Error("mounted again what ogw umount ended")
	}
}
