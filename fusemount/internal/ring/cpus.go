package ring

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cpus are those of the machine.
type cpus struct {
	possible int          // the kernel has a queue for each
	online   []int        // in order
	allowed  *unix.CPUSet // where the process may run
}

// machineCPUs returns ErrUnavailable if rings are not made for the machine.
func machineCPUs() (*cpus, error) {
	possible, err := listCPUs("possible")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	online, err := listCPUs("online")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	n := len(possible)
	if possible[n-1] != n-1 || n*spareThreads > MaxThreads/2 {
		return nil, fmt.Errorf("%w: not made for %d CPUs with numbers up to %d", ErrUnavailable, n, possible[n-1])
	}
	c := &cpus{possible: n, online: online, allowed: new(unix.CPUSet)}
	if err := unix.SchedGetaffinity(0, c.allowed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, cpu := range online {
		if !c.allowed.IsSet(cpu) {
			// Programs may run there, and nobody could dispatch its queue.
			return nil, fmt.Errorf("%w: this process may not run on CPU %d", ErrUnavailable, cpu)
		}
	}
	return c, nil
}

// listCPUs returns the numbers of the CPUs that are online, or possible, in order.
func listCPUs(which string) (list []int, err error) {
	file := "/sys/devices/system/cpu/" + which // such as 0-3,8
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(b)), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s names no CPU", file)
	}
	return list, nil
}

// setAffinity is in vain where a CPU went away or is forbidden now: the thread
// works anywhere.
func setAffinity(set *unix.CPUSet) { _ = unix.SchedSetaffinity(0, set) }
