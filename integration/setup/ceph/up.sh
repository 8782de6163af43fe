#!/bin/sh
# up.sh DIR: a Ceph cluster on loopback for tests, below DIR: a monitor, a manager, and OSDS
# (3) OSDs, each with an address and a CRUSH host of its own, without systemd or cephadm.
# Pools keep 3 copies on 3 OSDs and take writes while 2 are there. OSD_BYTES is the length of
# an OSD's (sparse) file, MON_PORT a free port. The packages
# are those of apt.sh ceph; any user may run it. down.sh DIR ends and removes it.
set -eu

dir=${1:?folder of the cluster}
osds=${OSDS:-3}
osd_bytes=${OSD_BYTES:-8589934592}
port=${MON_PORT:-23300}
conf=$dir/ceph.conf

[ ! -e "$conf" ] || { echo "up.sh: $dir holds a cluster: down.sh $dir" >&2; exit 1; }
mkdir -p "$dir/mon.a" "$dir/mgr.x" "$dir/log" "$dir/run"
fsid=$(cat /proc/sys/kernel/random/uuid)
mon="[v2:127.0.0.1:$port]"

# An OSD that died is noticed within seconds, and stays in: nothing moves while tests wait for
# it. What Ceph would take of memory and processors by itself is held down.
cat >"$conf" <<END
[global]
fsid = $fsid
mon_host = $mon
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
keyring = $dir/client.admin.keyring
run_dir = $dir/run
admin_socket = $dir/run/\$name.\$pid.asok
pid_file = $dir/run/\$name.pid
log_file = $dir/log/\$name.log
crash_dir = $dir/crash
ms_bind_ipv6 = false
ms_bind_msgr1 = false
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_num = 32
osd_pool_default_pg_autoscale_mode = off
mon_max_pg_per_osd = 10000
mon_allow_pool_delete = true
[client]
admin_socket =
log_file =
[mon]
mon_data = $dir/mon.\$id
mon_cluster_log_file = $dir/log/cluster.log
mon_data_avail_warn = 2
mon_data_avail_crit = 1
auth_allow_insecure_global_id_reclaim = false
mon_memory_target = 268435456
mon_osd_min_down_reporters = 1
mon_osd_down_out_interval = 3600
[mgr]
public_addr = 127.0.0.1
mgr_data = $dir/mgr.\$id
mgr_initial_modules =
mgr_disabled_modules = influx restful telegraf zabbix prometheus nfs mirroring test_orchestrator selftest localpool alerts insights osd_support
mgr_stats_period = 1
[osd]
osd_data = $dir/osd.\$id
keyring = $dir/osd.\$id/keyring
osd_objectstore = bluestore
bluestore_block_create = true
bluestore_block_path =
bluestore_block_size = $osd_bytes
bluestore_block_preallocate_file = false
bluestore_block_db_create = false
bluestore_block_wal_create = false
bluestore_cache_autotune = false
bluestore_cache_size = 134217728
osd_memory_target = 939524096
osd_op_num_shards = 4
osd_op_num_threads_per_shard = 1
osd_heartbeat_interval = 2
osd_heartbeat_grace = 6
osd_class_update_on_start = false
osd_mclock_skip_benchmark = true
END
osd_ids=$(seq 0 $((osds - 1)))
for i in $osd_ids; do
	cat >>"$conf" <<END
[osd.$i]
public_addr = 127.0.0.$((11 + i))
cluster_addr = 127.0.0.$((11 + i))
crush_location = root=default host=node$((i + 1))
END
done

ceph() { command ceph -c "$conf" --connect-timeout 60 "$@"; }

# await N SECONDS COMMAND...: until the command succeeded N times running.
await() {
	need=$1 end=$(($(date +%s) + $2)) good=0
	shift 2
	while [ "$good" -lt "$need" ]; do
		if "$@"; then good=$((good + 1)); else good=0; fi
		[ "$(date +%s)" -lt "$end" ] || { echo "up.sh: not within time: $*" >&2; exit 1; }
		[ "$good" -ge "$need" ] || sleep 0.3
	done
}

ceph-authtool --create-keyring "$dir/mon.keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
ceph-authtool --create-keyring "$dir/client.admin.keyring" --gen-key -n client.admin \
	--cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
ceph-authtool "$dir/mon.keyring" --import-keyring "$dir/client.admin.keyring" >/dev/null
monmaptool --create --clobber --fsid "$fsid" --addv a "$mon" "$dir/monmap" >/dev/null
ceph-mon -c "$conf" --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/mon.keyring"
ceph-mon -c "$conf" -i a
ceph auth get-or-create mgr.x mon 'allow profile mgr' osd 'allow *' mds 'allow *' -o "$dir/mgr.x/keyring"
ceph-mgr -c "$conf" -i x --keyring "$dir/mgr.x/keyring"

for i in $osd_ids; do
	(
		mkdir -p "$dir/osd.$i"
		uuid=$(cat /proc/sys/kernel/random/uuid) key=$(ceph-authtool --gen-print-key)
		echo "{\"cephx_secret\":\"$key\"}" >"$dir/osd.$i/new.json"
		ceph osd new "$uuid" "$i" -i "$dir/osd.$i/new.json" >/dev/null
		rm "$dir/osd.$i/new.json"
		ceph-authtool --create-keyring "$dir/osd.$i/keyring" -n "osd.$i" --add-key "$key" >/dev/null
		ceph-osd -c "$conf" -i "$i" --mkfs --osd-uuid "$uuid" >"$dir/log/mkfs.$i.log" 2>&1
		ceph-osd -c "$conf" -i "$i" >/dev/null
	) &
done
wait
all_up() { ceph osd stat -f json 2>/dev/null | grep -q "\"num_up_osds\":$osds,"; }
await 1 60 all_up

# The first pool takes longer than later ones: the manager has to see the OSDs.
ceph osd pool create first 8 8 >/dev/null 2>&1
clean() { ceph pg stat -f json 2>/dev/null | grep -q '"num_pg_by_state":\[{"name":"active+clean","num":[89]}\]'; }
await 2 60 clean
