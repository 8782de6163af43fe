# sh -c SCRIPT sh OGW DIR, in a network and mount namespace of its own.
set -eu
ogw=$1 dir=$2
ip link set lo up
mount -t tmpfs tmpfs /run
rpcbind -f & rpcbind=$!
server=
trap 'kill $rpcbind $server 2>/dev/null' EXIT
try() { # COMMAND...: until it succeeds
	n=0
	until "$@" > /dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 200 ] || { echo "never: $*"; cat "$dir/log"; exit 1; }
		sleep 0.1
	done
}
try rpcinfo -p 127.0.0.1
cat > "$dir/ogw.toml" <<CONFIG
[cluster]
dir = "$dir/data"
[[gateway]]
protocol = "rest"
listen = "127.0.0.1:8080"
[[gateway]]
protocol = "nfs"
listen = "127.0.0.1:2049"
portmap = "on"
[[gateway.export]]
path = "/public"
clients = ["10.0.0.0/8", "127.0.0.0/8"]
squash = "none"
[[gateway.export]]
path = "/private"
secret = "hidden-secret-word"
[[gateway.export]]
path = "/elsewhere"
clients = ["192.0.2.0/24"]
CONFIG
"$ogw" serve --config "$dir/ogw.toml" > "$dir/log" 2>&1 & server=$!
try curl -sf -T "$dir/ogw.toml" http://127.0.0.1:8080/public/a-file
try rpcinfo -t 127.0.0.1 100005 3
rpcinfo -p 127.0.0.1
showmount --no-headers -e 127.0.0.1 | sed 's/  */ /g; 1i Export list'
nfs-ls 'nfs://127.0.0.1/public?version=3'
showmount -a 127.0.0.1
kill $server
wait $server
server=
echo "== stopped"
rpcinfo -p 127.0.0.1
