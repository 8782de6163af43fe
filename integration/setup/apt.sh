#!/bin/sh
# apt.sh SET...: installs the Debian packages of each set that are missing.
# Needs root (or sudo) only if something is missing.
set -eu

packages() {
	case $1 in
	# Clients that the tests drive, and what they check with.
	clients) echo awscli s3cmd rclone curl libnfs-utils fuse3 rsync sqlite3 attr acl fio git gcc libc6-dev systemd ;;
	# Programs that use S3.
	programs) echo restic duplicity python3-boto3 s3fs util-linux ;;
	# A Linux kernel in qemu; the kernel package is unpacked, not installed.
	vm) echo qemu-system-x86 busybox-static cpio socat kmod rpcbind nfs-common iproute2 util-linux ;;
	# What the NFS benchmark measures with, and the server beside ours.
	bench-nfs) echo libnfs-dev gcc libc6-dev nfs-ganesha nfs-ganesha-vfs rpcbind iproute2 util-linux ;;
	# What checks the models.
	model) echo spin gcc libc6-dev ;;
	# What make bench has programs do on a mount.
	bench) echo fuse3 sqlite3 postgresql git rocksdb-tools ;;
	bench-ab) echo libnfs-dev gcc libc6-dev ;;
	# Servers of engines; etcd is a Go program, which make builds.
	cluster) echo postgresql ;;
	# The library of Ceph's clients, and a cluster for it.
	librados) echo librados-dev gcc libc6-dev ;;
	ceph) echo ceph-mon ceph-mgr ceph-osd ceph-common librados-dev gcc libc6-dev ;;
	# Programs that a mount is kept for.
	survive) echo fuse3 sqlite3 postgresql ;;
	*) echo "apt.sh: unknown set $1 (clients, programs, vm, bench, bench-nfs, bench-ab, librados, ceph, cluster, model, survive)" >&2; exit 2 ;;
	esac
}

missing=
for set in "$@"; do
	for p in $(packages "$set"); do
		dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $p"
	done
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
