package fusemount

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster/mem"
)

// twoBehind are two gateways over one store, whose mounts have flush_behind.
func twoBehind(t *testing.T) (a, b *gateway) {
	t.Helper()
	return twoGateways(t, mem.Options{}, Options{FlushBehind: true})
}

// What is closed while the program has the file locked, through whichever descriptor, the
// other gateway sees as soon as it can lock it.
func TestFlushBehindLocked(t *testing.T) {
	a, b := twoBehind(t)
	for _, l := range lockings {
		for _, through := range []string{"same", "another"} {
			t.Run(l.name+" "+through, func(t *testing.T) {
				name := fmt.Sprint(l.name, through)
				write(t, a.path(name), "")
				for i := range 10 {
					text := fmt.Sprint("text ", i)
					lock := opened(t, a.path(name), os.O_RDWR)
					must(t, l.try(lock, unix.F_WRLCK))
					f := lock
					if through == "another" {
						f = opened(t, a.path(name), os.O_RDWR)
					}
					_, err := f.WriteAt([]byte(text), 0)
					must(t, err)
					must(t, f.Close())
					if through == "another" {
						must(t, lock.Close())
					}
					g := opened(t, b.path(name), os.O_RDWR)
					must(t, l.try(g, unix.F_WRLCK))
					wantText(t, b.path(name), text)
					must(t, g.Close())
				}
			})
		}
	}
}

// What is closed at one gateway is at the other one within the promised time.
func TestFlushBehindBeside(t *testing.T) {
	a, b := twoBehind(t)
	var worst time.Duration
	for i := range 10 {
		name, text := fmt.Sprint("f", i), fmt.Sprint("text ", i)
		write(t, a.path(name), text)
		begin := time.Now()
		eventually(t, func() error {
			got, err := os.ReadFile(b.path(name))
			if err == nil && string(got) != text {
				err = errors.New("it has " + string(got))
			}
			return err
		})
		worst = max(worst, time.Since(begin))
	}
	t.Logf("seen after %v at most", worst)
	if worst > 2*time.Second { // a second, and a machine that is busy
		t.Errorf("seen after %v", worst)
	}
}
