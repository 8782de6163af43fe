# The same machine after a reboot tells whom it had locks with.
mount_locks /mnt2 noac || { echo "FAIL mount"; exit 1; }
ask fuse-busy
ls /var/lib/nfs/sm
sm-notify
sleep 3
ask fuse-free
umount /mnt2
finish
