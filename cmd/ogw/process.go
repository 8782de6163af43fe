package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/admin"
	"ogw/vfs"
	"ogw/vfs/users"
)

const (
	// forceWait is how long shutting down waits for handlers whose
	// connections were cut.
	forceWait = 5 * time.Second
	// flushWait bounds the last flush: with a drained process it is short,
	// and a stuck disk must not keep the process for ever.
	flushWait = 2 * time.Minute
)

// door is one listener and what answers there.
type door struct {
	gateway  admin.Gateway
	serve    func() error                // until shutdown
	shutdown func(context.Context) error // drains; cuts when the context ends
	clients  func() []admin.NFSClient    // may be nil
	mapped   func() bool                 // by a portmapper; may be nil
	state    string                      // guarded by process.mu
}

// process is everything that runs. It implements admin.Process.
type process struct {
	cfg    *config.Config
	log    *slog.Logger
	engine *cluster.Cluster
	fs     *vfs.FS
	audit  *auditor // nil until it is open
	mounts mountTable

	exports *exportBook
	metrics http.Handler

	connections int // that each door takes at once
	sends       *httpapi.Sends
	doors       []*door // fixed once wired
	admin       []*door // served until the end

	firstKey *users.AccessKey // made at this start
	// credentials is where root's key is kept besides the store.
	credentials credentials
	started     bool // it served; set once, by run

	mu       sync.Mutex // guards state of doors, and stopping
	stopping bool
	stop     chan struct{} // closed by Stop
	failed   chan error    // a door that ended by itself
}

// Gateways implements admin.Process.
func (p *process) Gateways() []admin.Gateway {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []admin.Gateway{}
	for _, d := range p.doors {
		g := d.gateway
		g.State = d.state
		if d.clients != nil {
			g.Clients = d.clients()
		}
		g.Portmapper = d.mapped != nil && d.mapped()
		out = append(out, g)
	}
	return out
}

// Ready implements admin.Process.
func (p *process) Ready(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return fmt.Errorf("%w: stopping", vfs.ErrUnavailable)
	}
	for _, d := range p.doors {
		if d.state != "serving" {
			return fmt.Errorf("%w: gateway %s is not serving", vfs.ErrUnavailable, d.gateway.Name)
		}
	}
	if state, _ := p.Store(); state != storeWritable {
		return fmt.Errorf("%w: the store is %s", vfs.ErrUnavailable, state)
	}
	return nil
}

// The states of a store.
const (
	storeWritable = "writable"
	storeReadOnly = "read-only"
	storeFailed   = "failed"
)

// Store implements admin.Process.
func (p *process) Store() (state string, why error) {
	if p.engine.Writable == nil {
		return storeWritable, nil
	}
	switch err := p.engine.Writable(); {
	case err == nil:
		return storeWritable, nil
	case errors.Is(err, cluster.ErrReadOnly):
		return storeReadOnly, err
	default:
		return storeFailed, err
	}
}

// Stop implements admin.Process.
func (p *process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping {
		p.stopping = true
		close(p.stop)
	}
}

// start serves every door.
func (p *process) start() {
	for _, d := range append(append([]*door(nil), p.doors...), p.admin...) {
		p.setState(d, "serving")
		go func() {
			err := d.serve()
			p.setState(d, "stopped")
			if err != nil {
				p.failed <- fmt.Errorf("gateway %s: %w", d.gateway.Name, err)
			}
		}()
	}
}

func (p *process) setState(d *door, state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.state = state
}

// run serves until ctx ends, Stop is called or a door fails, and then drains
// and closes everything.
func (p *process) run(ctx context.Context) error {
	p.start()
	p.started = true
	p.audit.started(p.cfg, p.firstKey)
	defer p.audit.followRename()()
	var failure error
	select {
	case <-ctx.Done():
	case <-p.stop:
	case failure = <-p.failed:
		p.log.Error("a gateway failed, stopping", "error", failure)
	}
	return errors.Join(failure, p.close())
}

// close drains the doors within the configured bound and closes everything
// below them.
func (p *process) close() error {
	p.Stop()
	begin := time.Now()
	drain, cancel := context.WithTimeout(context.Background(), p.cfg.Server.Drain)
	defer cancel()
	err := p.shutdownDoors(drain, p.doors)
	p.exports.close()
	p.mounts.closeAll()
	if p.fs != nil {
		flush, cancel := context.WithTimeout(context.Background(), flushWait)
		defer cancel()
		if e := p.fs.Close(flush); e != nil {
			err = errors.Join(err, fmt.Errorf("last flush: %w", e))
		}
	}
	err = errors.Join(err, p.shutdownDoors(drain, p.admin))
	if p.engine != nil {
		err = errors.Join(err, p.engine.Close())
	}
	if p.audit != nil {
		if p.started {
			p.audit.process("End", "", "", nil)
		}
		err = errors.Join(err, p.audit.log.Close())
	}
	if p.started {
		p.log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	}
	return err
}

// shutdownDoors drains doors at the same time. A door that had to be cut is
// not an error: what was acknowledged is safe.
func (p *process) shutdownDoors(ctx context.Context, doors []*door) error {
	errs := make([]error, len(doors))
	var wait sync.WaitGroup
	for i, d := range doors {
		wait.Go(func() {
			p.setState(d, "draining")
			err := d.shutdown(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				p.log.Warn("requests were cut off at the end of the drain time", "gateway", d.gateway.Name)
				err = nil
			}
			errs[i] = err
			p.setState(d, "stopped")
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// checkDir tells why a data folder cannot be one.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("data folder %s is not a folder", dir)
	}
	return nil
}
