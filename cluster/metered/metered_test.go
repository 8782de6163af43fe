package metered

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// value returns a metric's counter or sample count; -1 if it is absent.
func value(t *testing.T, r *prometheus.Registry, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			if matches(m, labels) {
				if m.Histogram != nil {
					return float64(m.Histogram.GetSampleCount())
				}
				return m.Counter.GetValue()
			}
		}
	}
	return -1
}

func matches(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.Label {
		if labels[l.GetName()] == l.GetValue() {
			found++
		}
	}
	return found == len(labels)
}

func TestCounts(t *testing.T) {
	ctx := context.Background()
	r := prometheus.NewRegistry()
	c, err := Wrap(mem.New(mem.Options{Seed: 1}), r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set := func(tx cluster.Txn) error { return tx.Set([]byte("k"), []byte("v")) }
	if err := c.KV.Update(ctx, set); err != nil {
		t.Fatal(err)
	}
	ours := errors.New("ours")
	if err := c.KV.View(ctx, func(cluster.Reader) error { return ours }); !errors.Is(err, ours) {
		t.Fatalf("the function's error became %v", err)
	}
	id := cluster.BlobID{Content: 1, Seq: 2}
	w, err := c.Blobs.Create(ctx, id, -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 2000)
	if n, err := c.Blobs.ReadAt(ctx, id, p, 400); n != 600 || err != io.EOF {
		t.Fatalf("read %d, %v", n, err)
	}
	if n, err := cluster.ReadSummed(ctx, c.Blobs, cluster.SummedBlob{ID: id}, p, 900); n != 100 || err != io.EOF {
		t.Fatalf("read %d, %v", n, err)
	}
	if _, err := c.Blobs.ReadAt(ctx, cluster.BlobID{Content: 9}, p, 0); !errors.Is(err, cluster.ErrNotFound) {
		t.Fatalf("absent blob: %v", err)
	}
	type labels = map[string]string
	for _, x := range []struct {
		name   string
		labels labels
		want   float64
	}{
		{"ogw_cluster_seconds", labels{"half": "kv", "op": "update"}, 1},
		{"ogw_cluster_seconds", labels{"half": "kv", "op": "view"}, 1},
		{"ogw_cluster_seconds", labels{"half": "blobs", "op": "read"}, 3},
		{"ogw_cluster_seconds", labels{"half": "blobs", "op": "commit"}, 1},
		{"ogw_cluster_blob_bytes_total", labels{"direction": "written"}, 1000},
		{"ogw_cluster_blob_bytes_total", labels{"direction": "read"}, 700},
		{"ogw_cluster_errors_total", labels{"half": "blobs", "op": "read", "kind": "not_found"}, 1},
		{"ogw_cluster_errors_total", labels{"half": "kv", "op": "view"}, -1},
		{"ogw_cluster_retries_total", labels{}, 0},
	} {
		if got := value(t, r, x.name, x.labels); got != x.want {
			t.Errorf("%s %v: %v, want %v", x.name, x.labels, got, x.want)
		}
	}
	if _, err := Wrap(c, r); err == nil {
		t.Error("metrics registered twice")
	}
}

// Conflicts that the engine hides are counted.
func TestRetries(t *testing.T) {
	r := prometheus.NewRegistry()
	c, err := Wrap(mem.New(mem.Options{Seed: 1, ConflictRate: 0.5}), r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 50 {
		if err := c.KV.Update(context.Background(), func(tx cluster.Txn) error { return tx.Set([]byte("k"), nil) }); err != nil {
			t.Fatal(err)
		}
	}
	if got := value(t, r, "ogw_cluster_retries_total", nil); got < 10 {
		t.Errorf("%v retries at a conflict rate of 0.5", got)
	}
}
