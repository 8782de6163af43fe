package integration

import (
	"os"
	"strconv"
	"testing"
	"time"

	"ogw/integration/model"
)

// modelSteps is how many operations each worker runs.
const modelSteps = 500

// TestModel drives random operations through all doors of the process at once
// against a model. OGW_MODEL_SEED repeats a run, OGW_MODEL_STEPS lengthens it.
// The Go API is among the doors in the test of that name in cmd/ogw.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("OGW_MODEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	steps := modelSteps
	if v, err := strconv.Atoi(os.Getenv("OGW_MODEL_STEPS")); err == nil {
		steps = v
	}
	t.Logf("OGW_MODEL_SEED=%d", seed)
	s := newServer(t, options{})
	model.Run(t, s.doors(t).model(), seed, steps)
	checkClean(t, s)
}
