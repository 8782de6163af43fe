# Two mounts that do not know of each other, with the server going away now
# and then.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
mount_nfs / /mnt2 nosharecache,noac || { echo "FAIL second mount"; exit 1; }
check "remounted without attribute caching" sh -c 'umount /mnt'
mount_nfs / /mnt nosharecache,noac || { echo "FAIL mount"; exit 1; }
mkdir /mnt/d
echo "@host disturb"
check "changes seen through the other mount" guestprog share /mnt/d /mnt2/d "$ROUNDS"
echo "@host calm"
check "rm -rf" rm -rf /mnt2/d
same "nothing left" "" ls -A /mnt
check umount umount /mnt
check umount umount /mnt2
finish
