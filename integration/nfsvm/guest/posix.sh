# What programs do to files, through the kernel's client.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
grep -o 'rsize=[0-9]*,wsize=[0-9]*' /proc/mounts
cd /mnt

check mkdir mkdir d
refuse "mkdir again" "exists" mkdir d
chmod 777 d
cd d

check write sh -c 'echo hello > f'
same read hello cat f
check "append" sh -c 'echo a >> f; echo b >> f'
same "appended" "hello a b" sh -c 'echo $(cat f)'
dd if=/dev/urandom of=/tmp/r bs=1M count=24 2>/dev/null
check "24 MiB" dd if=/tmp/r of=big bs=1M conv=fsync
forget_caches
check "24 MiB read back" cmp /tmp/r big
dd if=/dev/urandom of=/tmp/p bs=4k count=1 2>/dev/null
for at in 0 7 100 4095 6143; do
	dd if=/tmp/p of=/tmp/r bs=4k seek=$at conv=notrunc 2>/dev/null
	dd if=/tmp/p of=big bs=4k seek=$at conv=notrunc 2>/dev/null
done
forget_caches
check "random overwrites" cmp /tmp/r big
check "overwrite across a page" sh -c 'for i in /tmp/r big; do printf 0123456789 | dd of=$i bs=1 seek=8190 conv=notrunc 2>/dev/null; done; echo 3 > /proc/sys/vm/drop_caches; cmp /tmp/r big'
check "rename" mv big big2
forget_caches
check "same bytes under the new name" cmp /tmp/r big2
check "shrink and grow" sh -c 'for i in /tmp/r big2; do truncate -s 5000 $i; truncate -s 100000 $i; done; echo 3 > /proc/sys/vm/drop_caches; cmp /tmp/r big2'
check "sparse" sh -c 'truncate -s 0 sp; printf end | dd of=sp bs=1 seek=5000000 2>/dev/null; [ $(stat -c %s sp) = 5000003 ]; [ "$(tail -c 3 sp)" = end ]'

check "symbolic link" ln -s f sl
same "readlink" f readlink sl
same "through the link" "hello a b" sh -c 'echo $(cat sl)'
check "long symbolic link" sh -c 'ln -s $(head -c 2000 /dev/zero | tr "\0" x) longlink; [ $(readlink longlink | wc -c) = 2001 ]'
check "hard link" ln f hl
same "two links" "2 2" sh -c 'echo $(stat -c %h f hl)'
check "same inode" [ f -ef hl ]
check fifo mkfifo ff
check "data through the fifo" sh -c 'cat ff > /tmp/ff & echo x > ff; wait; grep -q x /tmp/ff'
check "character device" sh -c 'mknod cd c 1 3; [ "$(stat -c "%F %t %T" cd)" = "character special file 1 3" ]'
check "device works" sh -c 'echo x > cd'
check "block device" sh -c 'mknod bd b 259 300; [ "$(stat -c "%t %T" bd)" = "103 12c" ]'

check chmod chmod 4755 f
same "mode" 4755 stat -c %a f
check chown chown 1000:1001 f
same "owner" 1000:1001 stat -c %u:%g f
same "setuid gone after chown" 755 stat -c %a f
check "times" touch -d "2001-02-03 04:05:06" f
same "mtime" "2001-02-03 04:05:06" sh -c 'stat -c %y f | cut -c1-19'
check "created by alice" su alice -c "touch af"
same "alice owns it" 1000:1000 stat -c %u:%g af
check "secret" sh -c 'echo secret > sec; chmod 600 sec'
refuse "alice reads root's file" "denied" su alice -c "cat sec"
refuse "alice writes root's file" "denied" su alice -c "echo x > sec"
refuse "alice changes its mode" "not permitted" su alice -c "chmod 777 sec"
check "alice writes a file of mode 0444" su alice -c 'umask 333; echo text > ro'
same "written" text cat ro
check "sticky directory" sh -c 'mkdir st; chmod 1777 st; su alice -c "echo x > st/a"'
refuse "bob removes alice's file" "not permitted\|denied" su bob -c "rm -f st/a"
check "alice removes it" su alice -c "rm st/a"
check "setgid directory" sh -c 'mkdir sg; chown 0:1001 sg; chmod 2777 sg; su alice -c "touch sg/x; mkdir sg/y"; [ "$(stat -c %g sg/x)" = 1001 ] && [ "$(stat -c "%g %a" sg/y)" = "1001 2755" ]'

check "exclusive" sh -c 'set -C; echo x > ex'
refuse "exclusive again" "exist" sh -c 'set -C; echo y > ex'
same "untouched" x cat ex
check "truncated by >" sh -c 'echo longer text > tr; echo s > tr; [ "$(cat tr)" = s ]'
check "rename over" sh -c 'echo 1 > a; echo 2 > b; mv a b; [ "$(cat b)" = 1 ] && [ ! -e a ]'
check "rename of a directory" sh -c 'mkdir x; echo q > x/y; mv x z; [ "$(cat z/y)" = q ]'
check "rename of a directory with an open file" sh -c 'mkdir x; echo q > x/y; exec 3<>x/y; mv x zz; echo w >&3; exec 3>&-; [ "$(cat zz/y)" = w ]'
check "write to a renamed file" sh -c 'echo zz > or; exec 3<>or; mv or or2; echo more >&3; exec 3>&-; [ "$(cat or2)" = more ]'
check "read of a removed file" sh -c 'echo zz > ou; exec 3<ou; rm ou; [ "$(cat <&3)" = zz ]; exec 3<&-; [ $(ls -a | grep -c nfs0) = 0 ]'
refuse "rmdir of a full directory" "not empty" rmdir z
refuse "directory onto a file" "directory" mv -T z f
refuse "name too long" "too long" touch "$(head -c 256 /dev/zero | tr '\0' n)"
check "longest name" sh -c 'n=$(head -c 255 /dev/zero | tr "\0" n); echo x > $n; [ "$(cat $n)" = x ]; rm $n'
check "odd names" sh -c 'for n in "a b" "ä€😀" "-x" "a\\b" "*" "..x" "new
line"; do echo "$n" > "./$n"; [ "$(cat "./$n")" = "$n" ] || exit 1; rm "./$n"; done'
check "df" sh -c 'df . | tail -n 1 | grep -q 10.0.2.100'

check "1000 files" sh -c 'mkdir m; i=0; while [ $i -lt 1000 ]; do : > m/file$i; i=$((i+1)); done'
forget_caches
same "1000 listed" 1000 sh -c 'ls m | wc -l'
same "1000 listed long" 1001 sh -c 'ls -l m | wc -l'
check "half removed while listed" sh -c 'find m -type f | while read f; do case $f in *[02468]) rm $f;; esac; done'
same "500 left" 500 sh -c 'ls m | wc -l'
check "rm -r" rm -r m

mount_nfs / /mnt2 nosharecache,actimeo=1 || { echo "FAIL second mount"; exit 1; }
check "two mounts: new file" sh -c 'echo one > /mnt/d/two; sleep 2; [ "$(cat /mnt2/d/two)" = one ]'
check "two mounts: change seen at open" sh -c 'echo second > /mnt2/d/two; sleep 2; [ "$(cat /mnt/d/two)" = second ]'
check "two mounts: no lost append" sh -c 'echo x >> /mnt/d/two; sleep 2; echo y >> /mnt2/d/two; sleep 2; [ "$(echo $(cat /mnt/d/two))" = "second x y" ]'
check "two mounts: > of a file the other made" sh -c 'ls /mnt2/d/late 2>/dev/null; echo first > /mnt/d/late; echo more >> /mnt2/d/late; sleep 2; [ "$(echo $(cat /mnt/d/late))" = "first more" ]'
check "two mounts: removal seen" sh -c 'rm /mnt/d/two; sleep 2; ! cat /mnt2/d/two'
umount /mnt2

cd /mnt
check "rm -rf" rm -rf d
same "nothing left" "" ls -A
cd /
check umount umount /mnt
finish
