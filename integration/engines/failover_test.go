package engines

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"ogw/integration/nfsvm"
	"ogw/integration/testenv"
)

// failoverTimeout bounds the guest; its processor is emulated.
const failoverTimeout = 15 * time.Minute

// TestKernelClientFailover moves the address that a Linux NFS client has mounted from one
// gateway to another one, each time that the guest asks for the end of its server: killed
// between WRITE and COMMIT, while files are made, and stopped with files open.
func TestKernelClientFailover(t *testing.T) {
	if os.Getenv("OGW_TEST_VM") == "" {
		t.Skip("boots a virtual machine: make test-nfs-kernel (OGW_TEST_VM=1)")
	}
	for _, kind := range metaKinds {
		t.Run(kind.name, func(t *testing.T) { testFailover(t, startShared(t, kind.start)) })
	}
}

func testFailover(t *testing.T, x *shared) {
	x.manyGateways()
	x.nfs = "[[gateway.export]]\npath = \"/\"\nsquash = \"none\"\ninsecure = true # the relay is nobody's kernel\n"
	serves := x.gateway(nil)
	waits := x.gateway(serves)
	address := newRelay(t, serves.NFS)
	_, text, err := net.SplitHostPort(address.addr())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := filepath.Abs("../../.cache/nfsvm")
	if err != nil {
		t.Fatal(err)
	}
	moves, turn := sync.WaitGroup{}, sync.Mutex{}
	g := nfsvm.Guest{Cache: cache, Port: port, Script: nfsvm.Script("restart"), MemoryMiB: 512, Timeout: failoverTimeout,
		Line: func(line string) { t.Log(line) },
		Host: func(word string) {
			end := map[string]func(*testenv.Server){"kill": (*testenv.Server).Kill, "restart": (*testenv.Server).Stop}[word]
			if end == nil {
				t.Errorf("the guest asks for %q", word)
				return
			}
			moves.Go(func() {
				turn.Lock()
				defer turn.Unlock()
				serves, waits = waits, serves
				end(waits)
				address.move(serves.NFS)
				t.Logf("%s: the address is at %s", word, serves.NFS)
				waits.Start()
			})
		}}
	code, err := g.Boot(context.Background())
	moves.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 {
		t.Errorf("the guest's script ended with %d", code)
	}
	if out, err := serves.TryOGW("check", "--data"); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}
