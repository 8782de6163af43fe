#!/bin/sh
# fuzz.sh TIME: runs every fuzz target of the tree for TIME each. To make an
# interesting input smaller takes a minute by default, which would be all of it.
set -eu
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "== $pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 2s "$pkg"
	done
done
