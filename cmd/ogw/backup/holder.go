package backup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// NewHolder describes this process.
func NewHolder(what string) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return Holder{What: what, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Machine: machine(), Start: startOf(os.Getpid())}
}

// machine names this start of the machine, and the PID namespace; "" if it
// cannot be told.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + ns
}

// startOf returns when a process began; "" if there is none.
func startOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	i := bytes.LastIndexByte(b, ')') // the name may hold anything
	fields := strings.Fields(string(b[i+1:]))
	const start = 22 - 3
	if i < 0 || len(fields) <= start {
		return ""
	}
	return fields[start]
}

// wrote reports whether a lock is the holder's, of whichever beat.
func (h Holder) wrote(lock []byte) (beat int, ours bool) {
	var other Holder
	if json.Unmarshal(lock, &other) != nil {
		return 0, false
	}
	beat, other.Beat = other.Beat, h.Beat
	was, err := json.Marshal(other)
	if err != nil {
		return 0, false
	}
	b, err := json.Marshal(h)
	return beat, err == nil && bytes.Equal(was, b)
}

// ended reports whether the process is known to be gone.
func (h Holder) ended() bool {
	return h.Machine != "" && h.Machine == machine() && (h.Start == "" || startOf(h.PID) != h.Start)
}
