package fusebench

import (
	"context"
	"log/slog"
	"os"
	"testing"
)

// The benchmark runs through at a small scale; its figures mean nothing then.
func TestFUSE(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and /dev/fuse")
	}
	s := Scale{Rounds: 2, Files: 100, Listing: 500, Bytes: 8 << 20, Random: 50, Synced: 20, Parallel: 4, Tree: ".."}
	if os.Getenv("OGW_BENCH") != "" {
		s = DefaultScale()
	}
	if err := FUSE(context.Background(), testWriter{t}, t.TempDir(), s, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}
