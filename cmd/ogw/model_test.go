package main

import (
	"context"
	"log/slog"
	"os"
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
// process is this one, wired as the command wires it. OGW_MODEL_SEED repeats a
// run, OGW_MODEL_STEPS lengthens it.
func TestModel(t *testing.T) {
	needFUSE(t)
	needReservedPorts(t)
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("OGW_MODEL_SEED"), 10, 64); err == nil {
		seed = v
	}
	steps := modelSteps
	if v, err := strconv.Atoi(os.Getenv("OGW_MODEL_STEPS")); err == nil {
		steps = v
	}
	t.Logf("OGW_MODEL_SEED=%d", seed)
	w := newWorld(t)
	p := w.process()
	mnt := w.mkdir("mnt")
	if err := p.Mount(t.Context(), admin.Mount{Dir: mnt}); err != nil {
		t.Fatal(err)
	}
	embed := doors.NewGo(p.fs)
	files, err := embed.Files()
	if err != nil {
		t.Fatal(err)
	}
	addr := map[string]string{}
	for _, g := range p.Gateways() {
		addr[g.Protocol] = g.Listen
	}
	s3 := doors.NewS3(addr["s3"], p.firstKey.ID, p.firstKey.Secret)
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
	report, err := p.fs.Check(t.Context(), vfs.CheckOptions{Data: true})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %+v", err, report.Problems)
	}
}

// process runs the process of `ogw serve` within this one until the test ends.
func (w *world) process() *process {
	w.t.Helper()
	cfg, err := config.Load(config.Sources{
		Set:    []string{"cluster.dir=" + w.data("")},
		Listen: map[string]string{"s3": "127.0.0.1:0", "rest": "127.0.0.1:0", "nfs": "127.0.0.1:0"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	p, err := wire(ctx, cfg, log, log)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("end of the process: %v", err)
		}
	})
	return p
}
