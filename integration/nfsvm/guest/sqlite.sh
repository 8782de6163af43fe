# A database with transactions, one writer in two mounts' turns, and the
# server going away now and then. The client keeps the locks to itself.

mount_nfs / /mnt || { echo "FAIL mount"; exit 1; }
export PATH=/bin:/usr/bin
db=/mnt/data.db
sql() { sqlite3 -bail -cmd ".timeout 60000" "$db" "$1"; }
check "tables" sql 'create table account(id integer primary key, balance integer); create table log(n integer primary key, a, b, amount);
	with recursive c(x) as (select 1 union all select x+1 from c where x < 100) insert into account select x, 1000 from c;'
# Money moves between accounts; the sum and the log must agree at all times.
transfers() {
	i=0
	while [ $i -lt "$2" ]; do
		a=$((($1 * 7 + i * 13) % 100 + 1)) b=$((($1 * 11 + i * 17 + 50) % 100 + 1))
		sql "begin immediate; update account set balance = balance - 5 where id = $a; update account set balance = balance + 5 where id = $b; insert into log(a, b, amount) values($a, $b, 5); commit;" || return 1
		i=$((i + 1))
	done
}
echo "@host disturb"
transfers 1 "$ROUNDS" > /tmp/one 2>&1 & one=$!
transfers 2 "$ROUNDS" > /tmp/two 2>&1 & two=$!
check "transactions of one program" wait $one
check "transactions of another program" wait $two
cat /tmp/one /tmp/two
check "rolled back" sh -c "echo 'begin immediate; update account set balance = 0; rollback;' | sqlite3 $db"
mkfifo /tmp/in
sqlite3 "$db" < /tmp/in & killed=$!
(echo 'begin immediate; update account set balance = 0;'; sleep 3) > /tmp/in
check "killed in a transaction" kill -9 $killed
echo "@host calm"
forget_caches
same "every transaction is there" $((2 * ROUNDS)) sql 'select count(*) from log'
same "the sum" 100000 sql 'select sum(balance) from account'
same "integrity" ok sql 'pragma integrity_check'
rm -f /mnt/data.db*
cd /
check umount umount /mnt
finish
