#!/bin/sh
# npm.sh DIR: installs the SDKs for JavaScript that the tests drive below DIR, as
# node/package-lock.json pins it. Without npm the test of it is skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
	echo "npm.sh: no node and npm: the SDKs for JavaScript are not tested" >&2
	exit 0
fi
mkdir -p "$dir"
if cmp -s "$here/node/package-lock.json" "$dir/package-lock.json" && [ -d "$dir/node_modules/minio" ]; then
	exit 0
fi
cp "$here/node/package.json" "$here/node/package-lock.json" "$dir"
npm ci --prefix "$dir" --no-audit --no-fund --loglevel=error
