package holder

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Run is the main function of a holder process, started by Start. It returns
// when nothing is left to hold.
func Run(path string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	debug.FreeOSMemory() // of the program's start
	return Serve(os.NewFile(listenerFD, path), path)
}
