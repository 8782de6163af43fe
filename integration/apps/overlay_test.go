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
	need(t, "unshare", "setfattr")
	if list, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(list), "\toverlay\n") {
		t.Skip("this kernel has no overlay file system")
	}
	m := newMount(t)
	dir := filepath.Join(m.dir, "containers")
	must(t, os.Mkdir(dir, 0o755))
	m.run(dir, "unshare", "-m", "sh", "-c", overlayScript)
}
