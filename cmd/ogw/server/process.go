package server

import (
	"context"
	"fmt"
	"sync"

	"ogw/httpapi/admin"
	"ogw/vfs"
)

// process is what the API needs of all below it. It implements
// admin.Process.
type process struct {
	engine    *engine
	namespace *namespace
	gateways  *gateways

	mu       sync.Mutex // guards stopping; a leaf
	stopping bool
	stop     chan struct{} // closed by Stop
}

func newProcess(e *engine, n *namespace, g *gateways) *process {
	return &process{engine: e, namespace: n, gateways: g, stop: make(chan struct{})}
}

// Gateways implements admin.Process.
func (p *process) Gateways() []admin.Gateway {
	out := []admin.Gateway{}
	for _, d := range p.gateways.doors {
		out = append(out, d.info())
	}
	return out
}

// Mounts implements admin.Process.
func (p *process) Mounts() []admin.Mount {
	return append(p.namespace.mounts.List(), p.namespace.mounts.Missing()...)
}

// Mount implements admin.Process.
func (p *process) Mount(ctx context.Context, m admin.Mount) error {
	return p.namespace.mounts.Add(ctx, m)
}

// Umount implements admin.Process.
func (p *process) Umount(_ context.Context, dir string, lazy bool) (ends bool, err error) {
	if err := p.namespace.mounts.Remove(dir, lazy); err != nil {
		return false, err
	}
	return p.namespace.mounts.Last(), nil
}

// Ready implements admin.Process.
func (p *process) Ready(context.Context) error {
	p.mu.Lock()
	stopping := p.stopping
	p.mu.Unlock()
	if stopping {
		return fmt.Errorf("%w: stopping", vfs.ErrUnavailable)
	}
	for _, d := range p.gateways.doors {
		if !d.serves() {
			return fmt.Errorf("%w: gateway %s is not serving", vfs.ErrUnavailable, d.gateway.Name)
		}
	}
	if state, _ := p.Store(); state != StoreWritable {
		return fmt.Errorf("%w: the store is %s", vfs.ErrUnavailable, state)
	}
	return nil
}

// Store implements admin.Process.
func (p *process) Store() (state string, why error) { return storeState(p.engine.cluster) }

// Stop implements admin.Process.
func (p *process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping {
		p.stopping = true
		close(p.stop)
	}
}
