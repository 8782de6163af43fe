package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"

	"ogw/cluster/coherence"
	"ogw/cluster/readcache"
	"ogw/cmd/ogw/audit"
	"ogw/httpapi"
	"ogw/nfsserver"
	"ogw/vfs"
)

// requestBuckets go from a cached HEAD to an upload of hours.
var requestBuckets = []float64{.5e-3, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, .1, .25, .5, 1, 2.5, 10, 60, 600, 3600}

// fuseBuckets go from an attribute in memory to a lock that waits.
var fuseBuckets = []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, .5e-3, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, .1, .5, 2.5, 10, 60}

// statTimeout bounds a scrape's look at the store.
const statTimeout = 5 * time.Second

// meters are the metrics of a process.
type meters struct {
	registry *prometheus.Registry
	seconds  *prometheus.HistogramVec
	sent     *prometheus.CounterVec
	requests *prometheus.CounterVec

	fuseSeconds *prometheus.HistogramVec
	fuseErrors  *prometheus.CounterVec
}

func newMeters(version string) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ogw_http_request_seconds", Help: "Time that requests take, transfer included.", Buckets: requestBuckets,
		}, []string{"gateway", "operation"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ogw_http_response_bytes_total", Help: "Bytes of response bodies.",
		}, []string{"gateway", "operation"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ogw_http_requests_total", Help: "Requests by their status.",
		}, []string{"gateway", "operation", "status"}),
	}
	m.fuseSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ogw_fuse_request_seconds", Help: "Time that requests of FUSE mounts take.", Buckets: fuseBuckets,
	}, []string{"operation"})
	m.fuseErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ogw_fuse_errors_total", Help: "Requests of FUSE mounts answered with an error.",
	}, []string{"operation", "error"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ogw_build_info", Help: "The version that runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.seconds, m.sent, m.requests, m.fuseSeconds, m.fuseErrors, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// maxSeries bounds the kinds of answers of a gateway that are told apart: all operations
// with all that they are answered with. Of sub-resources that S3 does not know, clients
// choose the names.
const maxSeries = 1024

// http returns the function that a door calls for its requests.
func (m *meters) http(gateway string) func(*httpapi.Record) {
	t := &seriesTable{make: func(a answer) *series { return m.series(gateway, a) }}
	return func(r *httpapi.Record) { t.of(answer{r.Operation, r.Status}).count(r) }
}

// seriesTable has the series of answers that came before. It is copied to grow, so that
// a look takes neither a lock nor memory.
type seriesTable struct {
	make  func(answer) *series
	grow  sync.Mutex
	known atomic.Pointer[map[answer]*series]
}

// of returns the series of an answer.
func (t *seriesTable) of(a answer) *series {
	if known := t.known.Load(); known != nil {
		if s := (*known)[a]; s != nil {
			return s
		}
	}
	return t.add(a)
}

// add makes a series. Beyond maxSeries it is the one for others of the same status.
func (t *seriesTable) add(a answer) *series {
	t.grow.Lock()
	defer t.grow.Unlock()
	known := map[answer]*series{}
	if had := t.known.Load(); had != nil {
		known = *had
	}
	if len(known) >= maxSeries && known[a] == nil {
		a.operation = "other"
	}
	if s := known[a]; s != nil {
		return s
	}
	grown := maps.Clone(known)
	grown[a] = t.make(a)
	t.known.Store(&grown)
	return grown[a]
}

// answer is what a door's metrics tell apart.
type answer struct {
	operation string
	status    int
}

// series are the metrics of one kind of answer: to find them costs more than to
// count in them.
type series struct {
	seconds        prometheus.Observer
	sent, requests prometheus.Counter
}

func (m *meters) series(gateway string, a answer) *series {
	op := cmp.Or(a.operation, "unknown") // refused before it was understood
	return &series{m.seconds.WithLabelValues(gateway, op), m.sent.WithLabelValues(gateway, op),
		m.requests.WithLabelValues(gateway, op, strconv.Itoa(a.status))}
}

func (s *series) count(r *httpapi.Record) {
	s.seconds.Observe(r.Duration.Seconds())
	s.sent.Add(float64(r.BytesOut))
	s.requests.Inc()
}

// fuse counts the requests of mounts.
func (m *meters) fuse(operation string, took time.Duration, e syscall.Errno) {
	m.fuseSeconds.WithLabelValues(operation).Observe(took.Seconds())
	if e != 0 {
		m.fuseErrors.WithLabelValues(operation, unix.ErrnoName(e)).Inc()
	}
}

// addMounts counts the FUSE mounts.
func (m *meters) addMounts(count func() int) error {
	return m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ogw_fuse_mounts", Help: "FUSE mounts of this process.",
	}, func() float64 { return float64(count()) }))
}

// addState reports whether the store takes writes: what to alert on.
func (m *meters) addState(writable func() bool) error {
	return m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ogw_store_writable", Help: "1 while the store takes writes, 0 when its medium is read-only or it failed.",
	}, func() float64 {
		if writable() {
			return 1
		}
		return 0
	}))
}

// addReadCache counts what was read of the blobs of a shared store, by where it came from.
func (m *meters) addReadCache(b *readcache.Blobs) error {
	bytes := prometheus.NewDesc("ogw_read_cache_bytes_total", "Bytes of blobs of a shared store: given to readers from memory, and brought there from the disk or the servers.", []string{"from"}, nil)
	kept := prometheus.NewDesc("ogw_read_cache_kept_bytes", "Bytes of blobs of a shared store that are kept.", []string{"in"}, nil)
	return m.registry.Register(collect{[]*prometheus.Desc{bytes, kept}, func(out chan<- prometheus.Metric) {
		s := b.Stats()
		for from, n := range map[string]uint64{"memory": s.Memory, "disk": s.Disk, "servers": s.Fetched} {
			out <- prometheus.MustNewConstMetric(bytes, prometheus.CounterValue, float64(n), from)
		}
		for in, n := range map[string]int64{"memory": s.KeptMemory, "disk": s.KeptDisk} {
			out <- prometheus.MustNewConstMetric(kept, prometheus.GaugeValue, float64(n), in)
		}
	}})
}

// addPeers counts what gateways of a shared store tell each other, and what that spares.
func (m *meters) addPeers(c *coherence.Client) error {
	told := prometheus.NewDesc("ogw_peers_told", "Whether all other gateways tell this one what they change (1), so that it answers from memory.", nil, nil)
	tells := prometheus.NewDesc("ogw_peers_subscribed", "Other gateways that this one tells what it changes.", nil, nil)
	changes := prometheus.NewDesc("ogw_peers_changes_total", "Transactions that were announced to other gateways.", nil, nil)
	waited := prometheus.NewDesc("ogw_peers_wait_seconds_total", "Time that transactions waited for other gateways to take note of them.", nil, nil)
	late := prometheus.NewDesc("ogw_peers_late_total", "How often another gateway took no note in time.", nil, nil)
	spared := prometheus.NewDesc("ogw_peers_spared_total", "Questions to the metadata that were answered from memory.", nil, nil)
	return m.registry.Register(collect{[]*prometheus.Desc{told, tells, changes, waited, late, spared}, func(out chan<- prometheus.Metric) {
		s := c.Stats()
		up := 0.0
		if s.Told {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(told, prometheus.GaugeValue, up)
		out <- prometheus.MustNewConstMetric(tells, prometheus.GaugeValue, float64(s.Tells))
		out <- prometheus.MustNewConstMetric(changes, prometheus.CounterValue, float64(s.Announced))
		out <- prometheus.MustNewConstMetric(waited, prometheus.CounterValue, s.Waited.Seconds())
		out <- prometheus.MustNewConstMetric(late, prometheus.CounterValue, float64(s.Late))
		out <- prometheus.MustNewConstMetric(spared, prometheus.CounterValue, float64(s.Spared))
	}})
}

// addAudit counts what the audit log wrote and what it could not.
func (m *meters) addAudit(l *audit.Log) error {
	lines := prometheus.NewDesc("ogw_audit_lines_total", "Lines of the audit log.", []string{"class"}, nil)
	suppressed := prometheus.NewDesc("ogw_audit_suppressed_total", "Refusals that the audit log counts and does not list.", nil, nil)
	failed := prometheus.NewDesc("ogw_audit_failed_total", "Lines that the audit log could not write.", nil, nil)
	return m.registry.Register(collect{[]*prometheus.Desc{lines, suppressed, failed}, func(out chan<- prometheus.Metric) {
		s := l.Stats()
		for class, n := range s.Lines {
			out <- prometheus.MustNewConstMetric(lines, prometheus.CounterValue, float64(n), string(class))
		}
		out <- prometheus.MustNewConstMetric(suppressed, prometheus.CounterValue, float64(s.Suppressed))
		out <- prometheus.MustNewConstMetric(failed, prometheus.CounterValue, float64(s.Failed))
	}})
}

// collect is a collector of one function.
type collect struct {
	descs []*prometheus.Desc
	each  func(chan<- prometheus.Metric)
}

// Describe implements prometheus.Collector.
func (c collect) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collect) Collect(out chan<- prometheus.Metric) { c.each(out) }

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// addStore adds the metrics of the namespace.
func (m *meters) addStore(fs *vfs.FS) error {
	return m.registry.Register(&storeCollector{fs: fs,
		bytes: prometheus.NewDesc("ogw_store_bytes", "Size of the store's medium.", []string{"kind"}, nil),
		files: prometheus.NewDesc("ogw_store_inodes", "Inodes in use, an estimate.", nil, nil),
		damaged: prometheus.NewDesc("ogw_scrub_damaged_blobs",
			"Stored blobs that failed verification and that files use.", nil, nil),
		aside: prometheus.NewDesc("ogw_quarantine_aside_bytes",
			"Bytes of damaged blobs that no file uses, kept until they are released.", nil, nil),
		scrubbed: prometheus.NewDesc("ogw_scrub_pass_bytes", "Bytes that the scrub verified in the pass under way, or the last.", nil, nil),
		finished: prometheus.NewDesc("ogw_scrub_finished_timestamp_seconds", "When the scrub had verified everything, Unix time; 0 for never.", nil, nil),
	})
}

type storeCollector struct {
	fs                          *vfs.FS
	bytes, files                *prometheus.Desc
	damaged, scrubbed, finished *prometheus.Desc
	aside                       *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *storeCollector) Describe(out chan<- *prometheus.Desc) {
	out <- s.bytes
	out <- s.files
	out <- s.damaged
	out <- s.aside
	out <- s.scrubbed
	out <- s.finished
}

// Collect implements prometheus.Collector.
func (s *storeCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statTimeout)
	defer cancel()
	scrub := s.fs.Scrub(ctx)
	out <- prometheus.MustNewConstMetric(s.damaged, prometheus.GaugeValue, float64(len(scrub.Damaged)))
	out <- prometheus.MustNewConstMetric(s.aside, prometheus.GaugeValue, float64(scrub.AsideBytes))
	out <- prometheus.MustNewConstMetric(s.scrubbed, prometheus.GaugeValue, float64(scrub.Bytes))
	finished := 0.0
	if !scrub.Finished.IsZero() {
		finished = float64(scrub.Finished.Unix())
	}
	out <- prometheus.MustNewConstMetric(s.finished, prometheus.GaugeValue, finished)
	st, err := s.fs.StatFS(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(s.bytes, err)
		return
	}
	out <- prometheus.MustNewConstMetric(s.bytes, prometheus.GaugeValue, float64(st.TotalBytes), "total")
	out <- prometheus.MustNewConstMetric(s.bytes, prometheus.GaugeValue, float64(st.FreeBytes), "free")
	out <- prometheus.MustNewConstMetric(s.files, prometheus.GaugeValue, float64(st.Files))
}

// addNFS adds the figures of an NFS gateway.
func (m *meters) addNFS(gateway string, s *nfsserver.Server) error {
	label := prometheus.Labels{"gateway": gateway}
	perProc := []string{"program", "procedure"}
	return m.registry.Register(&nfsCollector{server: s,
		seconds: prometheus.NewDesc("ogw_nfs_call_seconds", "Time that calls take.", perProc, label),
		errors:  prometheus.NewDesc("ogw_nfs_errors_total", "Calls answered with an error.", perProc, label),
		replays: prometheus.NewDesc("ogw_nfs_replays_total", "Calls answered from the duplicate request cache.", perProc, label),
		bytes:   prometheus.NewDesc("ogw_nfs_bytes_total", "Bytes of records.", append(perProc, "direction"), label),
		clients: prometheus.NewDesc("ogw_nfs_clients", "Clients connected.", nil, label),
		lockers: prometheus.NewDesc("ogw_nfs_lock_clients", "Clients that may hold locks, told of a restart.", nil, label),
		blocked: prometheus.NewDesc("ogw_nfs_locks_blocked", "Lock requests that wait.", nil, label),
		grace:   prometheus.NewDesc("ogw_nfs_grace", "1 while clients take back their locks after a restart.", nil, label),
	})
}

type nfsCollector struct {
	server                                   *nfsserver.Server
	seconds, errors, replays, bytes, clients *prometheus.Desc
	lockers, blocked, grace                  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (n *nfsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{n.seconds, n.errors, n.replays, n.bytes, n.clients,
		n.lockers, n.blocked, n.grace} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (n *nfsCollector) Collect(out chan<- prometheus.Metric) {
	bounds := nfsserver.LatencyBounds()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, p := range n.server.Stats() {
		cumulative, sum := map[float64]uint64{}, uint64(0)
		for i, bound := range bounds {
			sum += p.Buckets[i]
			cumulative[bound.Seconds()] = sum
		}
		out <- prometheus.MustNewConstHistogram(n.seconds, p.Calls, p.Total.Seconds(), cumulative, p.Program, p.Proc)
		counter(n.errors, p.Errors, p.Program, p.Proc)
		counter(n.replays, p.Replayed, p.Program, p.Proc)
		counter(n.bytes, p.In, p.Program, p.Proc, "in")
		counter(n.bytes, p.Out, p.Program, p.Proc, "out")
	}
	gauge := func(d *prometheus.Desc, v int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	gauge(n.clients, len(n.server.Clients()))
	locks := n.server.Locks()
	gauge(n.lockers, locks.Durable)
	gauge(n.blocked, locks.Blocked)
	gauge(n.grace, map[bool]int{true: 1}[locks.Grace])
}
