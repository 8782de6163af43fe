package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/cmd/ogw/config"
	"ogw/httpapi"
)

// TestGroupMemory: the lowest limit counts, of the own group and of those
// above it, in both versions, and where a container sees the machine's path.
func TestGroupMemory(t *testing.T) {
	root := t.TempDir()
	for path, limit := range map[string]string{
		"a/memory.max": "536870912\n", "a/b/memory.max": "max\n", "a/b/c/memory.max": "1073741824\n", "other/memory.max": "1\n",
		"memory/docker/memory.limit_in_bytes": "268435456\n", "memory/docker/x/memory.limit_in_bytes": "9223372036854771712\n",
		"memory/memory.limit_in_bytes": "9223372036854771712\n",
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(limit), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for own, want := range map[string]int64{
		"0::/a/b/c\n":                     512 << 20,
		"0::/a/b/c\n4:memory:/docker/x\n": 256 << 20,
		"4:cpu,memory:/docker\n0::/\n":    math.MaxInt64,
		"4:memory:/docker/gone/deeper\n":  256 << 20,
		"0::/\n":                          math.MaxInt64,
		"nonsense\n":                      math.MaxInt64,
		// In another cgroup namespace: what has the name here is another group.
		"4:memory:/../../docker\n0::/../a":  math.MaxInt64,
		"0::/..\n":                          math.MaxInt64,
		"0::/..a/../a/b/c\n":                512 << 20,
		"3:cpuset:/docker\n1:name=memory:/": math.MaxInt64,
	} {
		file := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := groupMemory(file, root); got != want {
			t.Errorf("%q: %d, want %d", own, got, want)
		}
	}
	if got := groupMemory("/nonexistent", root); got != math.MaxInt64 {
		t.Errorf("no groups: %d", got)
	}
}

// TestUnknownGroup: a limit that cannot be seen is reported, unless the memory is
// set.
func TestUnknownGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cgroup")
	for own, want := range map[string]int{"0::/../beside\n4:memory:/..\n": 2, "0::/a\n3:cpu:/..\n": 0} {
		if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c := config.Default()
		log := slog.New(slog.NewTextHandler(&out, nil))
		warnOfGroups(c, file, log)
		if got := strings.Count(out.String(), "cluster.memory"); got != want {
			t.Errorf("%q: %s", own, &out)
		}
		out.Reset()
		c.Cluster.Memory = 1 << 30
		if warnOfGroups(c, file, log); out.Len() > 0 {
			t.Errorf("%q with cluster.memory: %s", own, &out)
		}
	}
}

// TestFitGiven: what the operator set stands, be it the default.
func TestFitGiven(t *testing.T) {
	d := config.Default().Cluster
	file := filepath.Join(t.TempDir(), "ogw.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[cluster]\ncache = %q\nmemory = \"256MiB\"\n", d.Cache), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sources      config.Sources
		cache, dirty bool // stand
	}{
		{config.Sources{File: file}, true, false},
		{config.Sources{File: file, Environ: []string{"OGW_CLUSTER_DIRTY=" + d.Dirty.String()}}, true, true},
		{config.Sources{Set: []string{"cluster.memory=256MiB", "cluster.dirty=" + d.Dirty.String()}}, false, true},
	} {
		cfg, err := config.Load(c.sources)
		if err != nil {
			t.Fatal(err)
		}
		fit(cfg)
		if (cfg.Cluster.Cache == d.Cache) != c.cache || (cfg.Cluster.Dirty == d.Dirty) != c.dirty {
			t.Errorf("%+v: cache %s, dirty %s", c.sources, cfg.Cluster.Cache, cfg.Cluster.Dirty)
		}
	}
}

// TestFit: what all budgets come to fits into the memory, with room for
// garbage, and what the operator set stands.
func TestFit(t *testing.T) {
	for _, memory := range []config.Size{256 << 20, 512 << 20, 1 << 30} {
		c := config.Default()
		c.Cluster.Memory = memory
		b := fit(c)
		const transfer, memTables = 256 << 10, 4
		sum := int64(c.Cluster.Cache) + int64(c.Cluster.Dirty) + memTables*b.memTable + 2*int64(b.rpc) + int64(b.requests)*transfer + int64(b.sends*float64(httpapi.SendsBytes))
		if sum > int64(memory)/2 || b.requests < leastRequests {
			t.Errorf("%s: budgets of %s: %+v, cache %s, dirty %s", memory, config.Size(sum), b, c.Cluster.Cache, c.Cluster.Dirty)
		}
		again := *c
		if fit(&again); again.Cluster != c.Cluster {
			t.Errorf("%s: twice is not once", memory)
		}
		if limit := heapLimit(c, availableMemory(c)); limit > int64(machineShare*float64(memory)) {
			t.Errorf("%s: heap of %d", memory, limit)
		}
	}
	c := config.Default()
	c.Cluster.Memory, c.Cluster.Cache = 256<<20, 99<<20
	if fit(c); c.Cluster.Cache != 99<<20 {
		t.Errorf("the cache that was set became %s", c.Cluster.Cache)
	}
	c = config.Default()
	c.Cluster.Memory = 8 << 30
	if b := fit(c); b != (budgets{}) || c.Cluster != func() config.Cluster { d := config.Default().Cluster; d.Memory = 8 << 30; return d }() {
		t.Errorf("with 8 GiB: %+v %+v", b, c.Cluster)
	}
}
