# The server dies and comes back; the client must see no more than a pause,
# and what was not committed must be sent again.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
cd /mnt
dd if=/dev/urandom of=/tmp/r bs=1M count=48 2>/dev/null

# WRITEs go out unstable while dd runs; fsync sends COMMIT to another process.
check "written before the server is killed" sh -c 'dd if=/tmp/r of=big bs=1M count=40 2>/dev/null; sync -d big 2>/dev/null & sleep 1; echo "@host kill" > /dev/ttyS1; wait'
check "48 MiB, killed in the middle" sh -c '(sleep 1; echo "@host kill" > /dev/ttyS1) & dd if=/tmp/r of=big bs=1M conv=fsync; wait'
sleep 3
forget_caches
check "every byte is there" cmp /tmp/r big

check "killed between writing and close" sh -c 'exec 3>held; cat /tmp/r >&3; echo "@host kill" > /dev/ttyS1; sleep 4; exec 3>&-'
forget_caches
check "every byte of the open file is there" cmp /tmp/r held

check "restarted with an open file" sh -c 'exec 4<>open; echo one >&4; echo "@host restart" > /dev/ttyS1; sleep 3; echo two >&4; exec 4>&-; [ "$(echo $(cat open))" = "one two" ]'
check "removed while open, server restarted" sh -c 'echo text > gone; exec 5<gone; rm gone; echo "@host restart" > /dev/ttyS1; sleep 3; [ "$(cat <&5)" = text ]; exec 5<&-'

mkdir m
check "files made while the server is killed" sh -c '
	(sleep 1; echo "@host kill" > /dev/ttyS1; sleep 4; echo "@host kill" > /dev/ttyS1) &
	set -C; i=0; while [ $i -lt 1500 ]; do echo $i > m/$i || exit 1; i=$((i+1)); done; wait'
sleep 3
forget_caches
same "all are there" 1500 sh -c 'ls m | wc -l'
check "all are right" sh -c 'i=0; while [ $i -lt 1500 ]; do [ "$(cat m/$i)" = $i ] || exit 1; i=$((i+50)); done'
check "listed across a restart" sh -c 'find m -type f | while read f; do [ $f != m/700 ] || { echo "@host restart" > /dev/ttyS1; sleep 3; echo 3 > /proc/sys/vm/drop_caches; }; echo $f; done > /tmp/list; [ $(sort -u /tmp/list | wc -l) = 1500 ]'
check "rm -rf across a restart" sh -c '(sleep 1; echo "@host restart" > /dev/ttyS1) & rm -rf m; wait; [ ! -e m ]'
sleep 3
cd /
check umount umount /mnt
finish
