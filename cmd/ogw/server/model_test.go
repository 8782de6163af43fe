package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/integration/doors"
	"ogw/integration/model"
	"ogw/vfs"
)

// modelSteps is how many operations each worker of TestModel runs.
const modelSteps = 300

// TestModel drives random operations through S3, REST, NFS, FUSE and the Go
// API at once against a model. The data folder has one process, so the
// process is this one. OGW_MODEL_SEED repeats a
// run, OGW_MODEL_STEPS lengthens it.
func TestModel(t *testing.T) {
	needDoors(t)
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("OGW_MODEL_SEED"), 10, 64); err == nil {
		seed = v
	}
	steps := modelSteps
	if v, err := strconv.Atoi(os.Getenv("OGW_MODEL_STEPS")); err == nil {
		steps = v
	}
	t.Logf("OGW_MODEL_SEED=%d", seed)
	p := serve(t)
	fs, mnt := p.namespace.fs, t.TempDir()
	if err := p.Mount(t.Context(), admin.Mount{Dir: mnt}); err != nil {
		t.Fatal(err)
	}
	embed := doors.NewGo(fs)
	files, err := embed.Files()
	if err != nil {
		t.Fatal(err)
	}
	addr := map[string]string{}
	for _, g := range p.Gateways() {
		addr[g.Protocol] = g.Listen
	}
	_, key := p.RootKey()
	s3 := doors.NewS3(addr["s3"], key.ID, key.Secret)
	fuse := doors.NewMount(mnt)
	nfs, err := doors.DialNFS(addr["nfs"], "/")
	if err != nil {
		t.Fatal(err)
	}
	defer nfs.Close()
	model.Run(t, &model.Doors{
		Objects: []doors.Object{s3, doors.NewREST(addr["rest"]), embed}, Stores: []doors.Store{s3, embed},
		Posix: []doors.Posix{fuse, nfs, files},
	}, seed, steps)
	report, err := fs.Check(t.Context(), vfs.CheckOptions{Data: true})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %+v", err, report.Problems)
	}
}

// needDoors skips where the machine cannot mount, or NFS clients get no reserved
// port.
func needDoors(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: NFS gateways take calls from reserved ports")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	f.Close()
}

// serve serves a new data folder until the test ends.
func serve(t *testing.T) *Server {
	t.Helper()
	cfg, err := config.Load(config.Sources{
		Set:    []string{"cluster.dir=" + filepath.Join(t.TempDir(), "ogw-data")},
		Listen: map[string]string{"s3": "127.0.0.1:0", "rest": "127.0.0.1:0", "nfs": "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	s, err := Open(ctx, cfg, Options{Log: log, Access: log})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("end of the process: %v", err)
		}
	})
	return s
}
