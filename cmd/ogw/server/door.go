package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"ogw/httpapi/admin"
	"ogw/nfsserver"
)

// door is one listener and what answers there.
type door struct {
	gateway  admin.Gateway
	serve    func() error                // until shutdown
	shutdown func(context.Context) error // drains; cuts when the context ends
	clients  func() []admin.NFSClient    // may be nil
	mapped   func() bool                 // by a portmapper; may be nil
	nfs      *nfsserver.Server           // nil but for NFS

	mu    sync.Mutex // guards the rest; a leaf
	state string
}

func (d *door) setState(state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

// info is what the API returns about a gateway.
func (d *door) info() admin.Gateway {
	g := d.gateway
	d.mu.Lock()
	g.State = d.state
	d.mu.Unlock()
	if d.clients != nil {
		g.Clients = d.clients()
	}
	g.Portmapper = d.mapped != nil && d.mapped()
	return g
}

// serves reports whether requests are answered.
func (d *door) serves() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == "serving"
}

// start serves doors. One that ends by itself is sent to failed, which has room for
// all.
func start(doors []*door, failed chan<- error) {
	for _, d := range doors {
		d.setState("serving")
		go func() {
			err := d.serve()
			d.setState("stopped")
			if err != nil {
				failed <- fmt.Errorf("gateway %s: %w", d.gateway.Name, err)
			}
		}()
	}
}

// shutdown drains doors at the same time. A door that had to be cut is not an
// error: what was acknowledged is safe.
func shutdown(ctx context.Context, doors []*door, log *slog.Logger) error {
	errs := make([]error, len(doors))
	var wait sync.WaitGroup
	for i, d := range doors {
		wait.Go(func() {
			d.setState("draining")
			err := d.shutdown(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				log.Warn("requests were cut off at the end of the drain time", "gateway", d.gateway.Name)
				err = nil
			}
			errs[i] = err
			d.setState("stopped")
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
