# The server is killed between WRITE and COMMIT: what was written is in its
# memory alone, and the client must notice and send it again.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
# calls PROCEDURE: how many the client has made.
calls() { awk -v op="$1:" '$1 == op { print $2 }' /proc/self/mountstats; }
commits=0
i=0
while [ $i -lt "$ROUNDS" ]; do
	before=$(calls WRITE)
	mkfifo /tmp/in
	sleep 1000 > /tmp/in & hold=$!
	guestprog commit /mnt/f$i "$BYTES" < /tmp/in > /tmp/said & prog=$!
	while ! grep -q written /tmp/said; do sleep 1; done
	writes=$(calls WRITE)
	same "nothing committed, round $i" "$commits" calls COMMIT
	echo "@host kill"
	sleep 3
	echo > /tmp/in
	check "synced in another process, round $i" wait $prog
	commits=$(calls COMMIT)
	check "sent again: $((writes - before)) WRITEs, then $(($(calls WRITE) - writes)), round $i" [ $(($(calls WRITE) - writes)) -ge $(((writes - before) / 2)) ]
	kill $hold
	rm /tmp/in
	forget_caches
	check "every byte is there, round $i" guestprog verify /mnt/f$i "$BYTES"
	i=$((i + 1))
done
check umount umount /mnt
finish
