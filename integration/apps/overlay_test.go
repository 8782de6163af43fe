package apps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlayScript changes a lower tree through an overlay in each way that
// leaves a mark in the upper one (copy, whiteout, opaque directory, redirect),
// mounts it again and looks.
const overlayScript = `set -eu
say() { echo "FAIL: $*"; exit 1; }
mkdir lower upper work merged
mkdir -p lower/keep lower/gone/deep lower/again lower/moved
for f in edited removed renamed linked keep/f gone/deep/f again/old moved/f; do echo "$f" > "lower/$f"; done
chmod 640 lower/edited; setfattr -n user.color -v red lower/edited
(cd lower && find . -type f -exec sha256sum {} + | sort) > sums
over() { mount -t overlay overlay -o "lowerdir=lower,upperdir=upper,workdir=work$1" merged; }

over ""
grep " merged\| $PWD/merged" /proc/mounts | grep -q "rw" || say "$(cat /proc/mounts)"
echo more >> merged/edited
rm merged/removed
mv merged/renamed merged/new
ln merged/linked merged/second
rm -r merged/gone
rm -r merged/again; mkdir merged/again; echo new > merged/again/new
mv merged/moved merged/away
touch merged/keep/added
umount merged

test -c upper/removed && test "$(stat -c %t:%T upper/removed)" = 0:0 || say "no whiteout"
over ""
test "$(cat merged/edited)" = "edited
more" || say "edited: $(cat merged/edited)"
test "$(stat -c %a merged/edited)" = 640 || say "mode of a copy"
test "$(getfattr --only-values -n user.color merged/edited)" = red || say "attribute of a copy"
for f in removed renamed gone moved again/old; do test ! -e "merged/$f" || say "$f is back"; done
test "$(cat merged/new)" = renamed || say "renamed"
test "$(cat merged/second)" = linked || say "linked"
test "$(cat merged/again/new)" = new || say "again"
test "$(cat merged/away/f)" = moved/f || say "away"
ls merged/keep | tr '\n' ' ' | grep -qx "added f " || say "keep: $(ls merged/keep)"
cp -a merged/. copy
diff -r merged copy || say "a copy differs"
rm -rf merged/*
test -z "$(ls merged)" || say "left: $(ls merged)"
umount merged
(cd lower && find . -type f -exec sha256sum {} + | sort) | cmp - sums || say "the lower tree changed"
`

// TestOverlay has both layers of an overlay file system on a mount, as
// container storage does.
func TestOverlay(t *testing.T) {
	need(t, "setfattr")
	m, dir := newOverlays(t)
	m.run(dir, "unshare", "-m", "sh", "-c", overlayScript)
}

// newOverlays makes a mount and, in it, a folder for the layers of overlays.
func newOverlays(t *testing.T) (m *mount, dir string) {
	t.Helper()
	need(t, "unshare")
	if list, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(list), "\toverlay\n") {
		t.Skip("this kernel has no overlay file system")
	}
	m = newMount(t, "-o", "no_handles")
	dir = filepath.Join(m.dir, "containers")
	must(t, os.Mkdir(dir, 0o755))
	return m, dir
}

// TestOverlayAgain has an overlay whose copies the kernel does not remember: it would find
// their lower files by handles, if there were any, and answer ESTALE.
func TestOverlayAgain(t *testing.T) {
	m, dir := newOverlays(t)
	const over = "set -eu; mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged\n"
	m.run(dir, "unshare", "-m", "sh", "-c", "mkdir lower upper work merged; echo lower > lower/f; "+over+"echo more >> merged/f")
	m.stop()
	m.start()
	got := m.run(dir, "unshare", "-m", "sh", "-c", over+"cat merged/f; echo again >> merged/f; chmod 600 merged/f; cat merged/f")
	if want := "lower\nmore\nlower\nmore\nagain\n"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

// imageScript makes the root of a system from programs of this machine, changes
// it in two steps that each become a layer, as the build of a container image
// does, and runs a container in what they make together.
const imageScript = `set -eu
say() { echo "FAIL: $*"; exit 1; }
mkdir base
for p in sh cat ls mkdir rm mv ln cp chmod chown touch sha256sum find sort grep id tar stat readlink; do
	file=$(readlink -f "$(command -v $p)")
	mkdir -p "base$(dirname "$file")" base/bin
	cp "$file" "base$file"
	test -e base/bin/$p || ln -s "$file" base/bin/$p
	ldd "$file" | grep -o '/[^ ]*' | sort -u | while read -r lib; do
		mkdir -p "base$(dirname "$lib")"
		test -e "base$lib" || cp -L "$lib" "base$lib"
	done
done
mkdir -p base/etc base/tmp base/var/cache/pkg base/opt/tool/lib base/usr/share/doc/tool
for i in $(seq 200); do echo "page $i" > base/usr/share/doc/tool/$i; echo "lib $i" > base/opt/tool/lib/$i; done
echo base > base/etc/release; touch base/var/cache/pkg/index

# step LAYER LOWER SCRIPT: runs a script in the layers below, which leaves one more.
step() {
	mkdir "$1" "$1.work" merged
	mount -t overlay overlay -o "lowerdir=$2,upperdir=$1,workdir=$1.work" merged
	env -i PATH=/bin unshare --mount --pid --fork --root=merged /bin/sh -euc "$3" || say "step $1"
	umount merged
	rmdir merged
}
step one base '
	echo one > /etc/release.new; mv /etc/release.new /etc/release
	rm -rf /usr/share/doc /var/cache/pkg
	mkdir -p /usr/share/doc; echo kept > /usr/share/doc/README
	mv /opt/tool /opt/tool-2; ln -s tool-2 /opt/tool
	(cd /opt/tool/lib && tar cf /tmp/libs.tar . && mkdir /srv && cd /srv && tar xf /tmp/libs.tar); rm /tmp/libs.tar
	chmod 4755 /bin/id; chown 12:34 /srv/7; ln /srv/8 /srv/8-again'
step two one:base '
	test "$(cat /etc/release)" = one
	for i in $(find /srv -name "*0" | sort); do echo changed >> "$i"; done
	rm /srv/9 /opt/tool; mv /srv /data; mkdir /srv; chmod 700 /srv
	cp -a /opt/tool-2 /opt/tool-3; rm -r /opt/tool-2'
sums='cd / && find bin data etc lib* opt srv usr var -type f -exec sha256sum {} + | sort | sha256sum'
step container two:one:base "
	test -z \"\$(ls -A /srv)\"; test \"\$(stat -c %a /srv)\" = 700
	test ! -e /var/cache/pkg; test ! -e /opt/tool; test ! -e /opt/tool-2; test ! -e /data/9
	test \"\$(ls /usr/share/doc)\" = README
	test \"\$(stat -c %u:%g /data/7)\" = 12:34
	cat /data/8 /data/8-again | grep -c 'lib 8' | grep -qx 2
	cat /data/10 | grep -qx changed; cat /opt/tool-3/lib/10 | grep -qx 'lib 10'
	$sums > /tmp/sums"
step again two:one:base "$sums > /tmp/sums"
cmp container/tmp/sums again/tmp/sums || say "two containers of one image differ"
test "$(cat base/etc/release)" = base && test "$(ls base/usr/share/doc/tool | grep -c .)" = 200 || say "the base changed"
`

// TestImage builds an image and runs it, with all layers on a mount.
func TestImage(t *testing.T) {
	need(t, "ldd", "tar")
	m, dir := newOverlays(t)
	m.run(dir, "unshare", "-m", "sh", "-c", imageScript)
}
