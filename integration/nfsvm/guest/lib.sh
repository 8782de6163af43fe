# Functions of all guest scripts.

server=10.0.2.100
options=addr=$server,port=2049,proto=tcp,vers=3,mountaddr=$server,mountport=2049,mountproto=tcp,mountvers=3,nolock,hard,timeo=600,retrans=2

# mount_nfs EXPORT DIR [OPTIONS]
mount_nfs() { mount -i -t nfs -o "$options${3:+,$3}" "$server:$1" "$2"; }

forget_caches() { sync; echo 3 > /proc/sys/vm/drop_caches; }

failures=0

# check NAME COMMAND...: the command must succeed.
check() {
	name=$1; shift
	if "$@" > /tmp/out 2>&1; then
		echo "ok   $name"
	else
		echo "FAIL $name (exit $?)"; sed 's/^/     /' /tmp/out
		failures=$((failures + 1))
	fi
}

# refuse NAME TEXT COMMAND...: the command must fail and say TEXT.
refuse() {
	name=$1 text=$2; shift 2
	if "$@" > /tmp/out 2>&1; then
		echo "FAIL $name: succeeded"; sed 's/^/     /' /tmp/out
		failures=$((failures + 1))
	elif ! grep -q "$text" /tmp/out; then
		echo "FAIL $name: not \"$text\""; sed 's/^/     /' /tmp/out
		failures=$((failures + 1))
	else
		echo "ok   $name"
	fi
}

# same NAME WANT COMMAND...: the command must print WANT.
same() {
	name=$1 want=$2; shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$want" ]; then
		echo "ok   $name"
	else
		echo "FAIL $name: want \"$want\", got \"$got\""
		failures=$((failures + 1))
	fi
}

finish() { echo "$failures failures"; [ "$failures" = 0 ]; exit; }
