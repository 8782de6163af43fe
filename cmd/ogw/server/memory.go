package server

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/fair"
)

// fullMemory is what all budgets at their defaults need, garbage included.
// With less, each is as much smaller, in the same proportion.
const fullMemory = 2 << 30

// The smallest budgets that a share of little memory comes to.
const (
	leastCache    = 4 << 20
	leastDirty    = 8 << 20
	leastRequests = 32
	leastRPC      = 4 << 20
	leastMemTable = 1 << 20
	leastHeads    = 4 << 20
)

// Defaults that shrink with the memory, beside those of the configuration.
const (
	defaultRequests = 1024     // of the S3 and REST doors
	defaultRPC      = 96 << 20 // of nfsserver/rpc
	defaultMemTable = 32 << 20 // of cluster/local
)

// budgets is what the parts of the process may hold in memory. Zero is their
// own default.
type budgets struct {
	requests int   // in flight, of each HTTP gateway
	rpc      int   // bytes of requests, and of replies, of each NFS gateway
	memTable int64 // bytes
	heads    int64 // bytes, of the requests of each HTTP gateway
	// sends is the part of what HTTP replies are usually sent with, below 1.
	sends float64
}

// fit divides the memory: what the configuration says of a part stands, the
// rest follows cluster.memory, or what the machine or the control group has.
func fit(c *config.Config) budgets {
	memory := availableMemory(c)
	if memory >= fullMemory {
		return budgets{}
	}
	share := func(whole, least int64) int64 {
		return max(least, int64(float64(whole)*float64(memory)/fullMemory))
	}
	d := config.Default().Cluster
	if !c.Given("cluster.cache") && c.Cluster.Cache == d.Cache {
		c.Cluster.Cache = config.Size(share(int64(d.Cache), leastCache))
	}
	if !c.Given("cluster.dirty") && c.Cluster.Dirty == d.Dirty {
		c.Cluster.Dirty = config.Size(share(int64(d.Dirty), leastDirty))
	}
	return budgets{
		requests: int(share(defaultRequests, leastRequests)),
		rpc:      int(share(defaultRPC, leastRPC)),
		memTable: share(defaultMemTable, leastMemTable),
		heads:    share(fair.HeadBytes, leastHeads),
		sends:    float64(memory) / fullMemory,
	}
}

// availableMemory is what the process may use, in bytes.
func availableMemory(c *config.Config) int64 {
	if c.Cluster.Memory > 0 {
		return int64(c.Cluster.Memory)
	}
	return machineMemory()
}

// ownGroups names the control groups of the process.
const ownGroups = "/proc/self/cgroup"

// machineMemory is what the machine has, or the process's control group.
func machineMemory() int64 {
	total := int64(math.MaxInt64)
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit)
	}
	return min(total, groupMemory(ownGroups, "/sys/fs/cgroup"))
}

// memoryGroup is a control group of this process that may limit its memory.
type memoryGroup struct {
	path    string // as the kernel reports it
	version int
	mount   string // of version 1: the controllers that share the mount
}

// memoryGroups reads /proc/self/cgroup, which own names.
func memoryGroups(own string) (groups []memoryGroup) {
	text, err := os.ReadFile(own)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		switch {
		case len(f) != 3:
		case f[1] == "":
			groups = append(groups, memoryGroup{path: f[2], version: 2})
		case strings.Contains(","+f[1]+",", ",memory,"):
			groups = append(groups, memoryGroup{path: f[2], version: 1, mount: f[1]})
		}
	}
	return groups
}

// outside reports whether the group lies beside or above the root of the process's
// cgroup namespace: neither it nor what is above it can be seen, and what has
// the same name below that root is another.
func (g *memoryGroup) outside() bool { return g.path == "/.." || strings.HasPrefix(g.path, "/../") }

// groupMemory is the lowest limit of the process's control group and of those
// above it. own is /proc/self/cgroup, root where the groups are mounted. Within
// a container the path may be that of the machine, which is not there, while the
// container's own group is mounted as the root: each part that is there counts.
func groupMemory(own, root string) int64 {
	limit := int64(math.MaxInt64)
	for _, g := range memoryGroups(own) {
		if g.outside() {
			continue // warnOfGroups
		}
		tops, file := []string{root, filepath.Join(root, "unified")}, "memory.max"
		if g.version == 1 {
			tops, file = []string{filepath.Join(root, g.mount)}, "memory.limit_in_bytes"
		}
		for _, top := range tops {
			for path := filepath.Clean("/" + g.path); ; path = filepath.Dir(path) {
				limit = min(limit, readLimit(filepath.Join(top, path, file)))
				if path == "/" {
					break
				}
			}
		}
	}
	return limit
}

// warnOfGroups logs which limits of memory are not known.
func warnOfGroups(c *config.Config, own string, log *slog.Logger) {
	if c.Cluster.Memory > 0 {
		return
	}
	for _, g := range memoryGroups(own) {
		if g.outside() {
			log.Warn("the process's control group lies outside of its cgroup namespace: a limit of its memory is not known, and budgets follow the machine's; set cluster.memory",
				"group", g.path)
		}
	}
}

// readLimit reads a limit; none is the largest number.
func readLimit(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // or "max"
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}
