#!/bin/sh
# down.sh DIR: ends what up.sh started for DIR, and removes DIR.
set -eu

dir=${1:?folder of the cluster}
[ -e "$dir/ceph.conf" ] || exit 0

# ours PID: whether it is a process of this cluster, and not one that has its number since.
ours() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF "$dir/ceph.conf"; }

pids=
for file in "$dir"/run/osd.*.pid "$dir"/run/mgr.*.pid "$dir"/run/mon.*.pid; do
	[ -e "$file" ] || continue
	pid=$(cat "$file")
	if ours "$pid"; then
		kill -KILL "$pid"
		pids="$pids $pid"
	fi
done
for pid in $pids; do
	for _ in $(seq 100); do
		ours "$pid" || break
		sleep 0.1
	done
done
rm -rf "$dir"
