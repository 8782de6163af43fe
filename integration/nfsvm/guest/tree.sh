# A tree of sources goes in and is compared, with its owners, modes and times.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
ln -s package.go /tree/link
ln /tree/net.go /tree/hardlink
mkfifo /tree/fifo
chown -R 1000:1001 /tree/http
chmod 2750 /tree/http
# The size of a directory, and busybox's cp on a link's time, are no matter.
attributes() { (cd "$1" && find . -exec stat -c '%n %F %a %u:%g %h %s %Y' {} + | sed 's/\(directory [^ ]* [^ ]*\) .* \([0-9]*\)$/\1 \2/; s/\(symbolic link .*\) [0-9]*$/\1/' | sort); }

echo "@host disturb"
check "cp -a" cp -a /tree /mnt/tree
echo "@host calm"
forget_caches
attributes /tree > /tmp/want
attributes /mnt/tree > /tmp/got
check "owners, modes, sizes, times, links" cmp /tmp/want /tmp/got
cmp -s /tmp/want /tmp/got || diff /tmp/want /tmp/got | head -n 20
rm /tree/fifo /mnt/tree/fifo # busybox's diff would read them
check "diff -r" diff -r /tree /mnt/tree
check "renamed" mv /mnt/tree /mnt/moved
forget_caches
check "diff -r after renaming" diff -r /tree /mnt/moved
check "rm -rf" rm -rf /mnt/moved
same "nothing left" "" ls -A /mnt
cd /
check umount umount /mnt
finish
