package nfsvm

import (
	"context"
	_ "embed"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ogw/cluster/mem"
	"ogw/nfsserver"
	"ogw/vfs"
)

//go:embed guest/lib.sh
var guestLib string

//go:embed guest/posix.sh
var guestPosix string

// server is an NFS server in this process.
type server struct {
	t    *testing.T
	disk *mem.Disk
	fs   *vfs.FS
	nfs  *nfsserver.Server
	port int
}

func start(t *testing.T) *server {
	s := &server{t: t, disk: mem.NewDisk()}
	s.open()
	t.Cleanup(s.stop)
	return s
}

func (s *server) open() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if s.fs, err = vfs.Open(context.Background(), mem.New(mem.Options{Disk: s.disk}), vfs.Config{Logger: log}); err != nil {
		s.t.Fatal(err)
	}
	s.nfs, err = nfsserver.New(nfsserver.Config{FS: s.fs, Logger: log,
		Exports: []nfsserver.Export{{Path: "/", Squash: nfsserver.SquashNone}}})
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: s.port})
	if err != nil {
		s.t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	go s.nfs.Serve(l)
}

func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.nfs.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	if err := s.fs.Close(ctx); err != nil {
		s.t.Errorf("close: %v", err)
	}
}

// boot runs a guest script and fails the test with it.
func boot(t *testing.T, s *server, script string, g Guest) {
	t.Helper()
	if os.Getenv("OGW_TEST_VM") == "" {
		t.Skip("boots a virtual machine: make test-nfs-kernel (OGW_TEST_VM=1)")
	}
	cache, err := filepath.Abs("../../.cache/nfsvm")
	if err != nil {
		t.Fatal(err)
	}
	g.Cache, g.Port, g.Script = cache, s.port, guestLib+script
	if g.MemoryMiB == 0 {
		g.MemoryMiB = 512
	}
	if g.Timeout == 0 {
		g.Timeout = 10 * time.Minute
	}
	g.Line = func(line string) { t.Log(line) }
	code, err := g.Boot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 {
		t.Errorf("the guest's script ended with %d", code)
	}
}

func TestKernelClientPOSIX(t *testing.T) {
	s := start(t)
	boot(t, s, guestPosix, Guest{})
	for _, p := range s.nfs.Stats() {
		t.Logf("%-5s %-12s %7d calls %5d errors %4d replayed %10d in %10d out %8s", p.Program, p.Proc,
			p.Calls, p.Errors, p.Replayed, p.In, p.Out, (p.Total / time.Duration(p.Calls)).Round(time.Microsecond))
	}
}
