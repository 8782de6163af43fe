mount_locks /mnt || { echo "FAIL mount"; exit 1; }
mount_locks /mnt2 noac || { echo "FAIL second mount"; exit 1; }
touch /mnt/f

check "a lock" locker try /mnt/f w 0 0
hold a /mnt/f w 0 100
check "a process locks" wait_for /tmp/a.held
check "another mount does not get it" busy locker try /mnt2/f w 50 10
check "nor shared" busy locker try /mnt2/f r 99 1
check "another range is free" locker try /mnt2/f w 100 0
same "who has it" "type w start 0 length 100" locker test /mnt2/f r 10 10
let_go a
wait
check "given up" locker try /mnt2/f w 50 10

hold a /mnt/f r 0 0
check "shared" wait_for /tmp/a.held
check "shared by two" locker try /mnt2/f r 0 0
check "not exclusive" busy locker try /mnt2/f w 0 0
let_go a
wait

hold a /mnt/f w 0 10
wait_for /tmp/a.held
hold b /mnt2/f w 5 10
sleep 2
check "one waits" [ ! -e /tmp/b.held ]
before=$(uptime_s)
let_go a
check "granted by callback" wait_for /tmp/b.held 15
check "at once, not when the client asks again" [ $(($(uptime_s) - before)) -lt 10 ]
check "held by the one who waited" busy locker try /mnt/f w 5 1
let_go b
wait

hold a /mnt/f w 0 10
wait_for /tmp/a.held
locker hold /mnt2/f w 0 10 /tmp/c.held & waiting=$!
sleep 2
kill $waiting
wait $waiting 2>/dev/null
let_go a
wait
check "a cancelled request gets nothing" locker try /mnt/f w 0 10
check "never held" [ ! -e /tmp/c.held ]

check "flock" flock -x -n /mnt/f true
flock -x /mnt/f sleep 3 &
sleep 1
check "flock excludes the other mount" sh -c '! flock -x -n /mnt2/f true'
wait

# The same file through FUSE on the server's host.
ask fuse-hold
check "a FUSE process has it" busy locker try /mnt/f w 0 0
hold a /mnt/f w 0 0
sleep 2
check "waiting for it" [ ! -e /tmp/a.held ]
before=$(uptime_s)
ask fuse-release
check "granted when FUSE gives it up" wait_for /tmp/a.held 15
check "at once as well" [ $(($(uptime_s) - before)) -lt 10 ]
ask fuse-busy
let_go a
wait
ask fuse-free

# Two programs on one database, each through its own mount.
sql() { sqlite3 -bail -cmd ".timeout 120000" "$@"; }
check "a table" sql /mnt/data.db 'create table log(who, n)'
rows() { i=0; while [ $i -lt 15 ]; do sql "$1/data.db" "begin immediate; insert into log values('$2', $i); commit;" || return 1; i=$((i + 1)); done; }
rows /mnt one > /tmp/one 2>&1 & one=$!
rows /mnt2 two > /tmp/two 2>&1 & two=$!
check "one writes" wait $one
check "the other writes" wait $two
cat /tmp/one /tmp/two
same "every row" 30 sql /mnt/data.db 'select count(*) from log'
same "integrity" ok sql /mnt/data.db 'pragma integrity_check'

# A server that is killed, and one that stops in order: locks come back.
for how in kill restart; do
	hold a /mnt/f w 0 10
	wait_for /tmp/a.held
	ask $how 60
	check "taken back after $how" busy locker try /mnt2/f w 0 10
	check "others are free after $how" locker try /mnt2/f w 10 10
	ask fuse-busy
	let_go a
	wait
	check "given up after $how" locker try /mnt2/f w 0 10
done

cd /
check umount umount /mnt
check "second umount" umount /mnt2
finish
