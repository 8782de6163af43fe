package apps

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFio writes and verifies with fio: at random offsets, through mappings,
// past the page cache, with several jobs and requests in flight.
func TestFio(t *testing.T) {
	need(t, "fio")
	m := newMount(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"random", []string{"--rw=randwrite", "--bs=4k", "--ioengine=psync", "--size=24m"}},
		{"random mixed sizes", []string{"--rw=randrw", "--bsrange=512-128k", "--bs_unaligned", "--ioengine=psync", "--size=24m", "--fsync=50"}},
		{"overwrite", []string{"--rw=randwrite", "--bs=16k", "--ioengine=psync", "--size=16m", "--norandommap", "--io_size=32m", "--verify_backlog=256"}},
		{"sequential", []string{"--rw=write", "--bs=1m", "--ioengine=psync", "--size=128m"}},
		{"mmap", []string{"--rw=randwrite", "--bs=4k", "--ioengine=mmap", "--size=24m"}},
		{"mmap mixed", []string{"--rw=randrw", "--bs=8k", "--ioengine=mmap", "--size=16m", "--fsync=100"}},
		{"direct", []string{"--rw=randwrite", "--bs=4k", "--ioengine=psync", "--direct=1", "--size=16m"}},
		{"direct asynchronous", []string{"--rw=randwrite", "--bs=64k", "--ioengine=libaio", "--iodepth=16", "--direct=1", "--size=32m"}},
		{"direct sequential", []string{"--rw=write", "--bs=1m", "--ioengine=libaio", "--iodepth=4", "--direct=1", "--size=64m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := *m
			m.t = t
			file := filepath.Join(m.dir, strings.ReplaceAll(c.name, " ", "-"))
			args := append([]string{"--name=job", "--numjobs=2", "--filename_format=" + file + ".$jobnum", "--verify=crc32c", "--verify_fatal=1",
				"--do_verify=1", "--randrepeat=0", "--output-format=terse", "--fallocate=none", "--end_fsync=1"}, c.args...)
			out := m.run(m.base, "fio", args...)
			if strings.Contains(out, "verify:") || strings.Contains(out, "error=") {
				t.Errorf("fio: %s", tail(out))
			}
			m.run(m.base, "rm", file+".0", file+".1")
		})
	}
}
