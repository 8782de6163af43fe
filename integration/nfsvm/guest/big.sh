# A large file, written and read with the server going away now and then.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
echo "@host disturb"
check "written" guestprog write /mnt/big "$BYTES"
same "size" "$BYTES" stat -c %s /mnt/big
forget_caches
check "read" guestprog verify /mnt/big "$BYTES"
echo "@host calm"
check "removed" rm /mnt/big
check umount umount /mnt
finish
