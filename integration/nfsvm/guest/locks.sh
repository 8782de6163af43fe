# Locks without nolock: the kernel finds NLM through the server's portmapper,
# and tells its own status monitor of the server.

export PATH=/bin:/usr/bin:/sbin:/usr/sbin
# mount_locks DIR [OPTIONS]: no ports either; the portmapper has them all.
mount_locks() { mount -i -t nfs -o "addr=$server,proto=tcp,vers=3,hard,nosharecache,timeo=100,retrans=2${2:+,$2}" "$server:/" "$1"; }
start_monitor() {
	hostname guest
	mkdir -p /run /var/run /var/lib/nfs/sm /var/lib/nfs/sm.bak /run/rpcbind
	rpcbind
	rpc.statd --no-notify
}
# wait_for FILE [SECONDS]
wait_for() {
	n=$((${2:-20} * 10))
	while [ ! -e "$1" ]; do
		n=$((n - 1))
		[ $n -gt 0 ] || { echo "no $1 in time"; return 1; }
		usleep 100000
	done
}
# hold NAME ARGUMENTS: locker hold in the background; let NAME ends it.
hold() { name=$1; shift; rm -f "/tmp/$name.held" "/tmp/$name.end"; locker hold "$@" "/tmp/$name.held" "/tmp/$name.end" > "/tmp/$name.out" 2>&1 & }
let_go() { touch "/tmp/$1.end"; }
busy() { "$@"; [ $? = 3 ]; }
# ask WORD: has the host do something, and waits until it says that it did.
ask() { rm -f "/mnt2/said-$1"; echo "@host $1" > /dev/ttyS1; wait_for "/mnt2/said-$1" "${2:-40}"; }
uptime_s() { cut -d. -f1 /proc/uptime; }

start_monitor
