package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ogw/integration/model"
	"ogw/integration/testenv"
)

// modelSteps is how many operations each worker runs.
const modelSteps = 500

// TestModel drives random operations through all doors of the process at once
// against a model, while backups are made, which are restored and checked. OGW_MODEL_SEED repeats a run, OGW_MODEL_STEPS lengthens it.
// The Go API is among the doors in the test of that name in cmd/ogw.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("OGW_MODEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	steps := testenv.Count(t, "OGW_MODEL_STEPS", modelSteps)
	t.Logf("OGW_MODEL_SEED=%d", seed)
	s := newServer(t, options{})
	done := make(chan struct{})
	backed := make(chan []string)
	go func() { backed <- backups(t, s, done) }()
	model.Run(t, s.doors(t).model(), seed, steps)
	close(done)
	snapshots := <-backed
	checkClean(t, s)
	for _, id := range snapshots {
		dir := filepath.Join(testenv.TempDir(t), "restored")
		s.Command(s.Binary, "restore", s.backups(), id, "--dir", dir)
		if out := s.Command(s.Binary, "check", "--data", "--dir", dir); !strings.Contains(out, "clean") {
			t.Errorf("backup %s: %s", id, out)
		}
	}
}

// maxModelBackups bounds the backups that are restored.
const maxModelBackups = 6

func (s *server) backups() string { return filepath.Join(s.Dir, "backups") }

// backups makes backups until done, and returns some of them, the last too.
func backups(t *testing.T, s *server, done chan struct{}) (ids []string) {
	for {
		out, err := s.TryOGW("backup", s.backups(), "--without-secrets", "--json")
		var b backupSummary
		if err == nil {
			err = json.Unmarshal([]byte(out), &b)
		}
		if err != nil {
			t.Errorf("backup: %v %s", err, out)
			return ids
		}
		if time.Duration(b.Wait) > maxWriterWait {
			t.Errorf("writers waited %v for a backup", time.Duration(b.Wait))
		}
		if ids = append(ids, b.ID); len(ids) > maxModelBackups {
			ids = append(ids[:1], ids[2:]...)
		}
		select {
		case <-done:
			return ids
		default:
		}
	}
}
