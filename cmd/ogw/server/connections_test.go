package server

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"ogw/cmd/ogw/config"
)

func TestConnectionLimit(t *testing.T) {
	for _, c := range []struct {
		configured, listeners int
		files                 uint64
		want                  int
	}{
		{4096, 4, math.MaxUint64, 4096},
		{4096, 1, 8192, 4096},
		{4096, 4, 32768, 4096},
		{4096, 1, 1024, 512},
		{4096, 4, 1024, 128},
		{4096, 5, 1024, 102},
		{100, 5, 1024, 100},
		{4096, 4, 0, 1},
	} {
		var out bytes.Buffer
		got := connectionLimit(c.configured, c.listeners, c.files, slog.New(slog.NewTextHandler(&out, nil)))
		if got != c.want || strings.Contains(out.String(), "limit of open files") != (got < c.configured) {
			t.Errorf("%+v: %d, said %q", c, got, out.String())
		}
	}
}

// TestListeners: those of operators are counted, and what listens nowhere is not.
func TestListeners(t *testing.T) {
	cfg := &config.Config{Gateways: []config.Gateway{{Protocol: "s3"}, {Protocol: "rest"}, {Protocol: "nfs"}, {Protocol: "embed"}}}
	if n := listeners(cfg, &Options{}); n != 4 {
		t.Errorf("%d with the admin socket", n)
	}
	cfg.Admin.Listen = "127.0.0.1:9090"
	if n := listeners(cfg, &Options{Metrics: "127.0.0.1:9091"}); n != 6 {
		t.Errorf("%d with addresses of operators", n)
	}
}
