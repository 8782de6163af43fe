package holder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Command is the command of the program under which Run is called; it is what
// ps shows.
const Command = "hold-mounts"

// listenerFD is where a holder finds its socket.
const listenerFD = 3

// startTries bounds how often Start meets a holder that just ends.
const startTries = 3

// Start connects to the holder at path, and starts one if there is none: this
// program again, with Command and path as its arguments, in a session of its own.
func Start(path string) (c *Client, err error) {
	started := false
	for range startTries {
		if c, err = Dial(path); errors.Is(err, ErrNone) {
			if err = launch(path); err == nil {
				c, err = Dial(path)
			}
			started = true
		}
		if err != nil {
			return nil, err
		}
		c.fresh = started
		// From its first answer on, it stays as long as the connection.
		if err = c.Drop(""); err == nil {
			return c, nil
		}
		_ = c.Close()
		if errors.Is(err, ErrHung) {
			break
		}
	}
	return nil, err
}

func launch(path string) error {
	l, err := Listen(path)
	if err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	defer l.Close()                                      //nolint:errcheck // the child has it
	cmd := exec.Command("/proc/self/exe", Command, path) //nolint:gosec // ourselves
	cmd.Args[0] = os.Args[0]                             // as people know it
	cmd.Dir = "/"                                        // it keeps no file system busy
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=20"}        // it does next to nothing
	cmd.ExtraFiles = []*os.File{l}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	go func() { _ = cmd.Wait() }() // no zombie, should it end before this process
	return nil
}
