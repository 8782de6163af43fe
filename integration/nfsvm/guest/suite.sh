# The POSIX suite on a mount: what the kernel's client makes of the server.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
mkdir /mnt/suite /tmp/other
mount -t tmpfs other /tmp/other
export OGW_POSIX_DIR=/mnt/suite OGW_POSIX_OTHER=/tmp/other OGW_POSIX_WITHOUT="$WITHOUT" OGW_POSIX_EXPECTED="$EXPECTED"
/bin/posix.test -test.v -test.parallel 4 -test.timeout "$LIMIT" -test.run '^TestDirectory$' > /tmp/suite 2>&1
code=$?
grep -v -e '^ *=== ' -e '^ *--- PASS' -e '^ *--- SKIP' -e '^PASS' /tmp/suite
exit $code
