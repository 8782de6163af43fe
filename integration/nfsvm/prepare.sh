#!/bin/bash
# prepare.sh DIR: puts a Linux kernel (DIR/vmlinuz) and the first part of an
# initial RAM disk (DIR/base.cpio: busybox, the modules of an NFS client, and
# an init that runs /guest.sh) into DIR, unless they are there.
#
# The kernel is Debian's for virtual machines; its package is unpacked, never
# installed. Needs busybox-static, cpio, kmod, and apt's package lists.
set -euo pipefail

dir=$1
[ -s "$dir/vmlinuz" ] && [ -s "$dir/base.cpio" ] && exit 0
mkdir -p "$dir"
work=$(mktemp -d "$dir/prepare.XXXXXX")
trap 'rm -rf "$work"' EXIT

package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$package" ] || { echo "prepare.sh: apt knows no linux-image-cloud-amd64; try apt-get update" >&2; exit 1; }
(cd "$work" && apt-get download -q "$package" >&2 && dpkg -x "$package"_*.deb unpacked)
release=$(cd "$work/unpacked/boot" && echo vmlinuz-*)
release=${release#vmlinuz-}
modules=$work/unpacked/lib/modules/$release
[ -d "$modules" ] || modules=$work/unpacked/usr/lib/modules/$release
/sbin/depmod -b "${modules%/lib/modules/*}" "$release"

root=$work/root
mkdir -p "$root"/{bin,dev,etc,lib/modules/"$release",mnt,mnt2,proc,root,sys,tmp}
cp /bin/busybox "$root/bin/"
for applet in $(/bin/busybox --list); do
	[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done

# A module's line in modules.dep names the module, then all it depends on.
for module in virtio_pci virtio_net nfsv3 nfsv4 lockd; do
	sed -n "s|^\([^:]*/$module\.ko[^:]*\): *|\1 |p" "$modules/modules.dep"
done | tr ' ' '\n' | sort -u | while read -r file; do
	[ -n "$file" ] || continue
	mkdir -p "$root/lib/modules/$release/$(dirname "$file")"
	cp "$modules/$file" "$root/lib/modules/$release/$file"
done
cp "$modules"/modules.builtin "$modules"/modules.order "$root/lib/modules/$release/" 2>/dev/null || true
/sbin/depmod -b "$root" "$release"

cat > "$root/etc/passwd" <<'EOF'
root:x:0:0:root:/root:/bin/sh
alice:x:1000:1000:alice:/:/bin/sh
bob:x:1001:1001:bob:/:/bin/sh
EOF
cat > "$root/etc/group" <<'EOF'
root:x:0:
alice:x:1000:
bob:x:1001:
EOF
# Output goes to the second serial port, the exit code to the third.
cat > "$root/init" <<'EOF'
#!/bin/sh
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
for m in virtio_pci virtio_net nfsv3 nfsv4; do modprobe $m || echo "init: no module $m"; done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
. /guest.env
cd /
sh /guest.sh
code=$?
cd /
umount -f /mnt /mnt2 2>/dev/null
echo $code > /dev/ttyS2
poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) > "$work/base.cpio"
cp "$work/unpacked/boot/vmlinuz-$release" "$dir/vmlinuz"
mv "$work/base.cpio" "$dir/base.cpio"
