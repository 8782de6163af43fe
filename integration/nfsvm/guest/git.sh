# A clone onto the file system, with the server going away now and then.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
export GIT_EXEC_PATH=/usr/lib/git-core HOME=/root PATH=/bin:/usr/bin
git config --global safe.directory '*'
git config --global user.name guest
git config --global user.email guest@example.org
git config --global gc.auto 0
echo "@host disturb"
i=0
while [ $i -lt "$ROUNDS" ]; do
	check "clone $i" git clone -q /repo /mnt/clone$i
	i=$((i + 1))
done
cd /mnt/clone0
check "branch" git checkout -q -b work
j=0
while [ $j -lt 5 ]; do
	echo "line $j" >> added
	check "commit $j" sh -c 'git add added && git commit -q -m "one more"'
	j=$((j + 1))
done
check "repack" git repack -q -a -d
echo "@host calm"
forget_caches
i=0
while [ $i -lt "$ROUNDS" ]; do
	cd /mnt/clone$i
	check "fsck $i" git fsck --full --strict
	same "status $i" "" git status --porcelain
	same "commit $i" "$(git -C /repo rev-parse HEAD)" git rev-parse origin/HEAD
	i=$((i + 1))
done
cd /mnt
check "rm -rf" sh -c 'rm -rf /mnt/clone*'
same "nothing left" "" ls -A
cd /
check umount umount /mnt
finish
