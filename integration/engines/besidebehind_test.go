package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

// behindBound is how long after its close at one gateway a file may miss at another one,
// with room for a machine that is busy.
const behindBound = 4 * time.Second

// TestManyGatewaysBehind has two gateways over one store, the first with a mount whose close
// does not wait (flush_behind): what it closed is at the other one in time, and its end takes
// back no more than what was closed a moment before and not synced.
func TestManyGatewaysBehind(t *testing.T) { onMetadata(t, testManyGatewaysBehind) }

func testManyGatewaysBehind(t *testing.T, x *shared) {
	needMounts(t)
	x.manyGateways()
	a := x.gateway(nil)
	b := x.gateway(a)
	if err := s3Client(t, a).MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(a.Mount("-o", "flush_behind"), "bkt"), filepath.Join(b.Mount(), "bkt")
	t.Run("in time", func(t *testing.T) { closedIsSeen(t, from, to) })
	t.Run("killed", func(t *testing.T) { closedThenKilled(t, a, from, to) })
}

// closedBehind is a file that was written, perhaps synced, and closed.
type closedBehind struct {
	name, text string
	synced     bool
	at         time.Time
}

func closeBehind(dir string, i int) (c closedBehind, err error) {
	c = closedBehind{name: fmt.Sprint("f", i), text: strings.Repeat(fmt.Sprint(i, " "), 1+i%7*1000), synced: i%5 == 0}
	f, err := os.Create(filepath.Join(dir, c.name))
	if err != nil {
		return c, err
	}
	_, err = f.WriteString(c.text)
	if err == nil && c.synced {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	c.at = time.Now()
	return c, err
}

func closedIsSeen(t *testing.T, from, to string) {
	worst, late := time.Duration(0), 0
	for i := range 20 {
		c, err := closeBehind(from, i)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, c.name, func() error {
			got, err := os.ReadFile(filepath.Join(to, c.name))
			if err == nil && string(got) != c.text {
				err = fmt.Errorf("it has %d bytes of %d", len(got), len(c.text))
				if c.synced {
					t.Errorf("%s was synced: %v", c.name, err)
				}
			}
			return err
		})
		took := time.Since(c.at)
		if worst = max(worst, took); took > 50*time.Millisecond {
			late++
		}
	}
	t.Logf("seen after %v at most, %d of 20 after more than 50 ms", worst.Round(time.Millisecond), late)
	if worst > behindBound {
		t.Errorf("seen after %v", worst)
	}
	if late == 0 {
		t.Error("each close waited")
	}
}

func closedThenKilled(t *testing.T, a *testenv.Server, from, to string) {
	var list []closedBehind
	for begin := time.Now(); time.Since(begin) < behindBound+2*time.Second; time.Sleep(5 * time.Millisecond) {
		c, err := closeBehind(from, 100+len(list))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	killed := time.Now()
	a.Kill()
	lost := 0
	for _, c := range list {
		got, err := os.ReadFile(filepath.Join(to, c.name))
		switch age := killed.Sub(c.at); {
		case err == nil && string(got) == c.text:
		case c.synced || age > behindBound:
			t.Errorf("%s, closed %v before the end, synced %v: %d bytes of %d, %v", c.name, age, c.synced, len(got), len(c.text), err)
		case err != nil || len(got) > 0:
			t.Errorf("%s has a part: %d bytes of %d, %v", c.name, len(got), len(c.text), err)
		default:
			lost++
		}
	}
	t.Logf("%d files, of which %d lost what was written", len(list), lost)
}
