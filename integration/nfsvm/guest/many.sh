# Many files in one directory, listed while others are removed, with the
# server going away now and then.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
mkdir /mnt/many
echo "@host disturb"
check "created" guestprog fill /mnt/many "$FILES"
forget_caches
same "listed" "$FILES" sh -c 'ls /mnt/many | grep -c file-'
check "thinned out while listed" guestprog thin /mnt/many "$FILES"
cat /tmp/out
check "rm -rf" rm -rf /mnt/many
echo "@host calm"
same "nothing left" "" ls -A /mnt
check umount umount /mnt
finish
