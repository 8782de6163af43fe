# Ends with a lock held: the machine goes without a word.
mount_locks /mnt || { echo "FAIL mount"; exit 1; }
mount_locks /mnt2 noac
locker hold /mnt/f w 0 10 /tmp/a.held &
check "a lock" wait_for /tmp/a.held
ask fuse-busy
# What its disk would remember.
for f in /var/lib/nfs/sm/*; do echo "@host keep $f $(base64 "$f" | tr -d '\n')" > /dev/ttyS1; done
[ ! -e /var/lib/nfs/state ] || echo "@host keep /var/lib/nfs/state $(base64 /var/lib/nfs/state | tr -d '\n')" > /dev/ttyS1
sleep 1
echo $failures > /dev/ttyS2
poweroff -f
