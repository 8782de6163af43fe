package libnfs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/tools/bench/nfsclient"
)

// TestKilledBetweenWriteAndCommit plays a client that knows RFC 1813 section
// 3.3.21: it sends what it wrote again when COMMIT answers another verifier
// than WRITE did, and forgets it when the two are equal.
func TestKilledBetweenWriteAndCommit(t *testing.T) {
	dir, addr := t.TempDir(), testenv.FreeAddr(t)
	config := filepath.Join(dir, "ogw.toml")
	text := fmt.Sprintf("[cluster]\ndir = %q\n[[gateway]]\nprotocol = \"nfs\"\nlisten = %q\n", filepath.Join(dir, "data"), addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var cmd *exec.Cmd
	kill := func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	}
	run := func() *nfsclient.Client {
		t.Helper()
		cmd = exec.Command("../../bin/ogw", "serve", "--config", config)
		if err := cmd.Start(); err != nil {
			t.Fatalf("%v (make build makes it)", err)
		}
		if err := testenv.Await(nil, addr); err != nil {
			t.Fatal(err)
		}
		c, err := nfsclient.Dial(addr, addr, "/")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := run()
	defer func() { kill() }()
	file, err := c.Create(c.Root, "file")
	if err != nil {
		t.Fatal(err)
	}
	const block, blocks, rounds = 32 << 10, 40, 6
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, blocks*block)
	resent := 0
	for round := range rounds {
		// A part of the file changes; the rest was committed in rounds before.
		dirty := map[uint64]uint64{} // offset → verifier
		write := func(off uint64) {
			t.Helper()
			v, err := c.Write(file, off, want[off:off+block])
			if err != nil {
				t.Fatal(err)
			}
			dirty[off] = v
		}
		for range blocks / 2 {
			off := uint64(random.IntN(blocks)) * block
			for i := range block {
				want[off+uint64(i)] = byte(random.Uint32())
			}
			write(off)
		}
		if round%2 == 0 {
			kill()
			c = run()
		}
		for attempt := 0; len(dirty) > 0; attempt++ {
			if attempt == 3 {
				t.Fatal("the verifier changes for ever")
			}
			v, err := c.Commit(file)
			if err != nil {
				t.Fatal(err)
			}
			for off, wrote := range dirty {
				if wrote == v {
					delete(dirty, off)
				}
			}
			for off := range dirty {
				resent++
				write(off)
			}
		}
		if round%2 == 0 && resent == 0 {
			t.Error("the verifier is the same after the server was killed")
		}
		kill() // what was committed needs no goodbye
		c = run()
		for off := uint64(0); off < uint64(len(want)); off += block {
			got, err := c.Read(file, off, block)
			if err != nil {
				t.Fatal(err)
			}
			// Blocks at the end may not be written yet.
			if w := want[off : off+block]; !bytes.Equal(got, w[:len(got)]) || len(got) < block && !bytes.Equal(w[len(got):], make([]byte, block-len(got))) {
				t.Fatalf("round %d: the block at %d differs after COMMIT and a kill", round, off)
			}
		}
	}
	t.Logf("%d blocks were sent again", resent)
}
