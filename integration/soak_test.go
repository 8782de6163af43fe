package integration

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/integration/model"
	"ogw/integration/testenv"
)

const (
	// soakPhases is how many parts a soak is looked at in; the first is for
	// warming up.
	soakPhases = 6
	// A figure may grow from the second phase to the last by this share, and
	// by this much beside.
	soakGrowth      = 0.25
	soakMemorySlack = 48 << 20
	soakCountSlack  = 30
	soakSpaceFactor = 3         // bytes on the disk for a live one
	soakSpaceSlack  = 640 << 20 // segments in use and made ahead, logs, tables not yet compacted
	soakChurnKeys   = 16
	soakChurnBytes  = 6 << 20
	sampleEvery     = time.Second
	soakDefaultTime = 20 * time.Second
	// soakSteadyAfter: a shorter run only fills the heap up to its soft limit,
	// which takes ten minutes, and says nothing of growth.
	soakSteadyAfter = 30 * time.Minute
)

// soakRoots are the subtrees of the workers.
var soakRoots = []string{"soak-0", "soak-1", "soak-2/a", "soak-2/b"}

// soakSample is one look at the server.
type soakSample struct{ memory, files, goroutines, disk float64 }

// TestSoak runs the model's random operations and larger objects through all
// doors for OGW_SOAK_TIME (a short time if it is not set), and fails when
// memory, files, goroutines or space keep growing although the data does not.
func TestSoak(t *testing.T) {
	t.Parallel()
	length := soakDefaultTime
	if v := os.Getenv("OGW_SOAK_TIME"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("OGW_SOAK_TIME: %v", err)
		}
		length = d
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %v", seed, length)
	admin := testenv.FreeAddr(t)
	const token = "0123456789abcdef"
	s := newServer(t, options{Extra: fmt.Sprintf("[admin]\nlisten = %q\ntoken = %q\n", admin, token)})
	d := s.doors(t)
	s.makeBucket("soak-churn")
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	workers := model.Workers(t, d.model(), seed, soakRoots...)
	for _, w := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if !w.Step() {
					return
				}
			}
			w.End()
		})
	}
	churned := 0
	wg.Go(func() { churned = churn(ctx, t, d, rand.New(rand.NewPCG(seed, uint64(len(workers))))) })
	var samples []soakSample
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(sampleEvery):
			samples = append(samples, takeSample(t, s, admin, token))
		}
	}
	wg.Wait()
	steps := churned
	live := int64(0)
	for _, w := range workers {
		steps += w.Steps()
		live += w.Bytes()
	}
	t.Logf("%d operations", steps)
	if length < soakSteadyAfter {
		checkClean(t, s)
		return
	}
	wantSteady(t, samples)
	live += soakChurnKeys * soakChurnBytes // at the most
	testenv.Eventually(t, "the space of what was deleted", func() error {
		if used := testenv.DiskBytes(s.Data); used > soakSpaceFactor*live+soakSpaceSlack {
			return fmt.Errorf("%d MiB on the disk for at most %d MiB", used>>20, live>>20)
		}
		return nil
	})
	t.Logf("%d MiB on the disk for at most %d MiB of data", testenv.DiskBytes(s.Data)>>20, live>>20)
	checkClean(t, s)
}

// churn writes, reads and deletes objects that live in files of their own.
func churn(ctx context.Context, t *testing.T, doors *serverDoors, rnd *rand.Rand) (steps int) {
	all, bodies := doors.all(), make(map[string]string)
	for ctx.Err() == nil {
		steps++
		key := fmt.Sprintf("soak-churn/%d", rnd.IntN(soakChurnKeys))
		old, there := bodies[key]
		if there && rnd.IntN(3) == 0 {
			if err := doors.rest.Delete(key); err != nil {
				t.Errorf("delete %s: %v", key, err)
				return steps
			}
			delete(bodies, key)
			continue
		}
		d := all[rnd.IntN(len(all))]
		if there && rnd.IntN(2) == 0 {
			if got, err := d.Read(key); err != nil || got != old {
				t.Errorf("%s reads %d bytes of %s, want %d: %v", d.Name(), len(got), key, len(old), err)
				return steps
			}
			continue
		}
		body := strings.Repeat(fmt.Sprintf("%016x", rnd.Uint64()), 1+rnd.IntN(soakChurnBytes/16))
		if err := d.Write(key, body); err != nil {
			t.Errorf("%s writes %s: %v", d.Name(), key, err)
			return steps
		}
		bodies[key] = body
	}
	return steps
}

// takeSample asks the server for its figures.
func takeSample(t *testing.T, s *server, admin, token string) soakSample {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("metrics: %v", err)
		return soakSample{}
	}
	defer resp.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = v
		}
	}
	for name, least := range map[string]float64{
		"process_resident_memory_bytes": 1 << 20, "process_open_fds": 10, "go_goroutines": 10, // of an idle server
	} {
		if values[name] < least {
			t.Errorf("metrics say that %s is %v", name, values[name])
		}
	}
	return soakSample{values["process_resident_memory_bytes"], values["process_open_fds"], values["go_goroutines"], float64(testenv.DiskBytes(s.Data))}
}

// wantSteady compares the medians of the second phase and the last.
func wantSteady(t *testing.T, samples []soakSample) {
	t.Helper()
	size := len(samples) / soakPhases
	if size == 0 {
		t.Fatalf("%d samples only", len(samples))
	}
	for _, f := range []struct {
		name  string
		of    func(soakSample) float64
		slack float64
	}{
		{"resident bytes", func(s soakSample) float64 { return s.memory }, soakMemorySlack},
		{"open files", func(s soakSample) float64 { return s.files }, soakCountSlack},
		{"goroutines", func(s soakSample) float64 { return s.goroutines }, soakCountSlack},
		{"bytes on the disk", func(s soakSample) float64 { return s.disk }, soakSpaceSlack},
	} {
		var medians []float64
		for phase := range soakPhases {
			var v []float64
			for _, s := range samples[phase*size : (phase+1)*size] {
				v = append(v, f.of(s))
			}
			slices.Sort(v)
			medians = append(medians, v[len(v)/2])
		}
		t.Logf("%s: %.0f", f.name, medians)
		first, last := medians[1], medians[soakPhases-1]
		if last > first*(1+soakGrowth)+f.slack {
			t.Errorf("%s grow: medians of the phases are %.0f", f.name, medians)
		}
	}
}
