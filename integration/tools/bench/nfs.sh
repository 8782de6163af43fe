#!/bin/sh
# nfs.sh [OPTION...]: the NFS suite of the benchmark in a network of its own,
# where nfs-ganesha finds an rpcbind. Needs root.
set -eu
cd "$(dirname "$0")/../../.."
go build -o .cache/bench ./integration/tools/bench
# shellcheck disable=SC2016 # for the inner shell
exec unshare --net --mount sh -c '
	set -eu
	ip link set lo up
	mount -t tmpfs tmpfs /run
	rpcbind -f & rpcbind=$!
	trap "kill $rpcbind" EXIT
	mkdir -p /run/ganesha
	.cache/bench -run "^nfs$" "$@"
' sh "$@"
