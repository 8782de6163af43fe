# The server is killed between WRITE and COMMIT: what it acknowledged so far
# is in its memory alone, and the client must notice and send it again.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
echo 80 > /proc/sys/vm/dirty_ratio # nothing leaves before the file is whole
echo 70 > /proc/sys/vm/dirty_background_ratio
# calls PROCEDURE: how many the client has made and got an answer to.
calls() { awk -v op="$1:" '$1 == op { print $2 }' /proc/self/mountstats; }
acknowledged=20 # WRITEs that the kill must undo
i=0 tries=0
while [ $i -lt "$ROUNDS" ] && [ $tries -lt 20 ]; do
	tries=$((tries + 1))
	before=$(calls WRITE) commits=$(calls COMMIT)
	guestprog write /mnt/f$i "$BYTES" & prog=$!
	while [ $(($(calls WRITE) - before)) -lt $acknowledged ] && kill -0 $prog 2>/dev/null; do usleep 10000; done
	if [ "$(calls COMMIT)" != "$commits" ]; then
		echo "committed before this could look, once more"
		wait $prog
		continue
	fi
	echo "@host kill"
	check "synced in another process, round $i" wait $prog
	sent=$(($(calls WRITE) - before)) need=$(($BYTES / 1048576))
	check "sent again: $sent WRITEs where $need are enough, round $i" [ $sent -ge $((need + acknowledged)) ]
	forget_caches
	check "every byte is there, round $i" guestprog verify /mnt/f$i "$BYTES"
	i=$((i + 1))
done
same "rounds in which the kill came in time" "$ROUNDS" echo $i
check umount umount /mnt
finish
