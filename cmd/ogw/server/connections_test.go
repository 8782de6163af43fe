package server

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestConnectionLimit(t *testing.T) {
	for _, c := range []struct {
		configured int
		files      uint64
		want       int
	}{
		{4096, math.MaxUint64, 4096},
		{4096, 8192, 4096},
		{4096, 1024, 512},
		{100, 1024, 100},
		{4096, 0, 1},
	} {
		var out bytes.Buffer
		got := connectionLimit(c.configured, c.files, slog.New(slog.NewTextHandler(&out, nil)))
		if got != c.want || strings.Contains(out.String(), "limit of open files") != (got < c.configured) {
			t.Errorf("%+v: %d, said %q", c, got, out.String())
		}
	}
}
