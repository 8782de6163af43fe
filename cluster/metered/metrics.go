package metered

import (
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ogw/cluster"
)

// buckets go from a cached read (25 µs) to an engine that hangs (30 s).
var buckets = []float64{25e-6, 100e-6, 250e-6, 1e-3, 2.5e-3, 10e-3, 25e-3, 100e-3, 250e-3, 1, 2.5, 10, 30}

// metrics are shared by both halves.
type metrics struct {
	seconds  *prometheus.HistogramVec // half, op
	errors   *prometheus.CounterVec   // half, op, kind
	bytes    *prometheus.CounterVec   // direction
	attempts prometheus.Counter
}

// kinds name the errors in the metrics, a closed set.
var kinds = []struct {
	err  error
	kind string
}{
	{cluster.ErrConflict, "conflict"},
	{cluster.ErrTxTooLarge, "too_large"},
	{cluster.ErrUnavailable, "unavailable"},
	{cluster.ErrNotFound, "not_found"},
	{cluster.ErrExists, "exists"},
	{cluster.ErrCorrupt, "corrupt"},
	{cluster.ErrNoSpace, "no_space"},
	{cluster.ErrReadOnly, "read_only"},
	{cluster.ErrClosed, "closed"},
	{cluster.ErrInvalid, "invalid"},
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ogw_cluster_seconds", Help: "Time that calls to the storage engine take.", Buckets: buckets,
		}, []string{"half", "op"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ogw_cluster_errors_total", Help: "Calls to the storage engine that failed.",
		}, []string{"half", "op", "kind"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ogw_cluster_blob_bytes_total", Help: "Bytes of blobs read and written.",
		}, []string{"direction"}),
		attempts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ogw_cluster_retries_total", Help: "Times that a transaction ran again, because of changes made meanwhile.",
		}),
	}
	for _, c := range []prometheus.Collector{m.seconds, m.errors, m.bytes, m.attempts} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// op measures one kind of call.
type op struct {
	m          *metrics
	half, name string
	seconds    prometheus.Observer
}

func (m *metrics) op(half, name string) op {
	return op{m, half, name, m.seconds.WithLabelValues(half, name)}
}

// done records a call that began at start. An error that is none of the
// engine's came from the function that a transaction ran, and is no failure
// of the engine.
func (o op) done(start time.Time, err error) {
	o.seconds.Observe(time.Since(start).Seconds())
	if err == nil || errors.Is(err, io.EOF) {
		return
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			o.m.errors.WithLabelValues(o.half, o.name, k.kind).Inc()
			return
		}
	}
}
