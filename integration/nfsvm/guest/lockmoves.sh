# A lock that is held, and one that is waited for, while the server's address moves to another
# gateway.
mount_locks /mnt || { echo "FAIL mount"; exit 1; }
mount_locks /mnt2 noac || { echo "FAIL second mount"; exit 1; }
touch /mnt/f

for how in kill restart; do
	hold a /mnt/f w 0 10
	check "a process locks" wait_for /tmp/a.held
	ask fuse-busy
	ask fuse-hold
	check "a FUSE process at another gateway has it" busy locker try /mnt2/f w 20 10
	hold b /mnt/f w 20 10
	sleep 2
	check "waiting for it" [ ! -e /tmp/b.held ]
	before=$(uptime_s)
	ask $how 120
	check "held after $how" busy locker try /mnt2/f w 0 10
	check "others are free after $how" locker try /mnt2/f w 10 10
	check "without a grace period" [ $(($(uptime_s) - before)) -lt 60 ]
	ask fuse-busy
	check "waiting still" [ ! -e /tmp/b.held ]
	before=$(uptime_s)
	ask fuse-release
	check "granted at the gateway that has the address" wait_for /tmp/b.held 90
	echo "after $(($(uptime_s) - before)) s"
	check "held by the one who waited" busy locker try /mnt2/f w 20 10
	let_go a
	let_go b
	wait
	ask fuse-free
	# The next one is called back by the gateway that it asks now.
	ask fuse-hold
	hold c /mnt/f w 20 10
	sleep 2
	before=$(uptime_s)
	ask fuse-release
	check "granted by callback after $how" wait_for /tmp/c.held 15
	check "at once" [ $(($(uptime_s) - before)) -lt 10 ]
	let_go c
	wait
done

cd /
check umount umount /mnt
check "second umount" umount /mnt2
finish
