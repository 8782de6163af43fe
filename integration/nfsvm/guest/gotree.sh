# The sources of the toolchain, which the host stored, are read and compared;
# then a tree goes in from here and is compared, with owners, modes and times.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
check "read and compare: diff -r" diff -r /tree /mnt/stored
echo "compared: $(find /mnt/stored -type f | wc -l) files, $(du -sm /tree | cut -f1) MiB"

file=$(cd /tree && find . -name '*.go' | head -n 1)
ln -s "$file" /tree/link
ln "/tree/$file" /tree/hardlink
mkfifo /tree/fifo
chown -R 1000:1001 /tree/net/http
chmod 2750 /tree/net/http
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
echo "@host disturb"
check "diff -r" diff -r /tree /mnt/tree
check "renamed" mv /mnt/tree /mnt/moved
forget_caches
check "rm -rf" rm -rf /mnt/moved
echo "@host calm"
same "nothing left" "stored" ls -A /mnt
cd /
check umount umount /mnt
finish
