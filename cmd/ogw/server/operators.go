package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/admin"
)

// metricsName is the name of the listener that has nothing but metrics.
const metricsName = "metrics"

// operators are the doors of operators: the admin API at its socket and at an
// address, and the metrics.
type operators struct {
	gateways *gateways
	log      *slog.Logger
	doors    []*door
}

// openOperators is the last step. What it returns is to be closed after an error too.
func openOperators(cfg *config.Config, opt *Options, p *process) (*operators, error) {
	o := &operators{gateways: p.gateways, log: opt.Log}
	e, n, metrics := p.engine, p.namespace, p.engine.meters.handler()
	api := admin.New(admin.Config{
		FS: n.fs, Process: p, Logger: opt.Access, Version: opt.Version,
		Dir: cfg.Cluster.Dir, Engine: cfg.Cluster.Place(), PID: os.Getpid(), Started: e.started,
		Exports: p.gateways.exports, Locks: p.gateways.locks,
		Domains: cfg.Domains(), Metrics: metrics,
		Done: both(e.meters.http("admin"), e.audit.http("admin", "admin", apiCode)),
	})
	socket, err := admin.ListenSocket(filepath.Join(cfg.Cluster.Dir, admin.SocketName))
	if err != nil {
		return o, err
	}
	if err = o.add(config.Gateway{Name: "admin-socket"}, socket, api); err != nil {
		return o, err
	}
	for _, g := range operatorDoors(cfg, opt) {
		h := api.WithToken(cfg.Admin.Token, p.gateways.guesses)
		if g.Name == metricsName {
			h = onlyMetrics(metrics, httpapi.FrameConfig{Door: metricsName, Logger: opt.Access, Done: e.meters.http(metricsName)})
		}
		if err = o.listen(g, h); err != nil {
			return o, err
		}
	}
	return o, nil
}

// operatorDoors are the configured addresses of operators.
func operatorDoors(cfg *config.Config, opt *Options) (list []config.Gateway) {
	if cfg.Admin.Listen != "" {
		list = append(list, config.Gateway{Name: "admin", Listen: cfg.Admin.Listen, TLSCert: cfg.Admin.TLSCert, TLSKey: cfg.Admin.TLSKey})
	}
	if opt.Metrics != "" {
		list = append(list, config.Gateway{Name: metricsName, Listen: opt.Metrics})
	}
	return list
}

// onlyMetrics is the handler of that listener.
func onlyMetrics(metrics http.Handler, c httpapi.FrameConfig) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	return httpapi.Frame(mux, c)
}

func (o *operators) listen(g config.Gateway, h http.Handler) error {
	l, err := listen(g, o.log)
	if err != nil {
		return err
	}
	return o.add(g, l, h)
}

func (o *operators) add(g config.Gateway, l net.Listener, h http.Handler) error {
	g.Protocol = "admin"
	d, err := o.gateways.httpDoor(g, l, h)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	o.doors = append(o.doors, d)
	return nil
}
