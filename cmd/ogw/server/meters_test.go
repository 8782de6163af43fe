package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ogw/httpapi"
)

// TestMetricsBodyNeverSent: the listener of the metrics does not wait for ever for a body
// that is announced and never sent.
func TestMetricsBodyNeverSent(t *testing.T) {
	t.Parallel()
	m := newMeters("test")
	log := slog.New(slog.DiscardHandler)
	srv := httptest.NewServer(onlyMetrics(m.handler(), httpapi.FrameConfig{Door: metricsName, Logger: log, Done: m.http(metricsName)}))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	if err := c.SetDeadline(time.Now().Add(httpapi.StallTime)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200") {
		t.Errorf("%.100q %v", got, err)
	}
}

// TestMetersByAnswer: operations and statuses count apart, each request once, and
// counting takes no memory.
func TestMetersByAnswer(t *testing.T) {
	m := newMeters("test")
	count := m.http("s3")
	for range 3 {
		count(&httpapi.Record{Operation: "GetObject", Status: 200, BytesOut: 10, Duration: time.Millisecond})
	}
	count(&httpapi.Record{Operation: "GetObject", Status: 404})
	count(&httpapi.Record{Status: 400})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`ogw_http_requests_total{gateway="s3",operation="GetObject",status="200"} 3`,
		`ogw_http_requests_total{gateway="s3",operation="GetObject",status="404"} 1`,
		`ogw_http_requests_total{gateway="s3",operation="unknown",status="400"} 1`,
		`ogw_http_response_bytes_total{gateway="s3",operation="GetObject"} 30`,
		`ogw_http_request_seconds_count{gateway="s3",operation="GetObject"} 4`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is not there", line)
		}
	}
	r := &httpapi.Record{Operation: "GetObject", Status: 200}
	if n := testing.AllocsPerRun(100, func() { count(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Clients that make up operations make no more series than there is room for, and all
// of their requests count.
func TestMetersOfManyAnswers(t *testing.T) {
	m := newMeters("test")
	count := m.http("s3")
	for i := range 2 * maxSeries {
		count(&httpapi.Record{Operation: fmt.Sprintf("GET ?%d", i), Status: 501})
		count(&httpapi.Record{Operation: "GET ?0", Status: 501})
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if n := strings.Count(w.Body.String(), "\nogw_http_requests_total{"); n != maxSeries+1 {
		t.Errorf("%d series, want %d", n, maxSeries+1)
	}
	for _, line := range []string{
		fmt.Sprintf(`ogw_http_requests_total{gateway="s3",operation="other",status="501"} %d`, maxSeries),
		fmt.Sprintf(`ogw_http_requests_total{gateway="s3",operation="GET ?0",status="501"} %d`, 2*maxSeries+1),
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is not there", line)
		}
	}
}

func BenchmarkMeters(b *testing.B) {
	count, r := newMeters("test").http("s3"), &httpapi.Record{Operation: "HeadObject", Status: 200}
	b.ReportAllocs()
	for b.Loop() {
		count(r)
	}
}
