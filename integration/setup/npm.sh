#!/bin/sh
# npm.sh DIR: installs the SDKs for JavaScript that the tests drive below DIR, as
# node/package-lock.json pins them, and version 1 of the AWS CLI, which no other source
# of the tests has: DIR/awscli. Without npm they are not tested.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
	echo "npm.sh: no node and npm: the SDKs for JavaScript and version 1 of aws are not tested" >&2
	exit 0
fi
mkdir -p "$dir"
if cmp -s "$here/node/package-lock.json" "$dir/package-lock.json" && [ -f "$dir/awscli/aws" ]; then
	exit 0
fi
cp "$here/node/package.json" "$here/node/package-lock.json" "$dir"
npm ci --prefix "$dir" --no-audit --no-fund --loglevel=error
rm -rf "$dir/awscli" "$dir/layer"
python3 -m zipfile -e "$dir/node_modules/@aws-cdk/asset-awscli-v1/lib/layer.zip" "$dir/layer"
mv "$dir/layer/awscli" "$dir/awscli"
rm -rf "$dir/layer"
