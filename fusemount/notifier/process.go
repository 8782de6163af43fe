package notifier

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is the command of the program under which Run is called; it is what ps
// shows.
const Command = "notify-mount"

// Where the process finds its descriptors.
const (
	controlFD = 3
	deviceFD  = 4
)

// What a message asks for.
const (
	askNotify = 'n' // the message to the kernel follows
	askSize   = 's' // a Size follows, in JSON
)

// maxMessage bounds a message: 64 mount points of usual length, or a name.
const maxMessage = 32 << 10

// launch starts the process, and returns its control socket and its number. It
// takes device over.
func launch(device int) (control, pid int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, errors.Join(err, unix.Close(device))
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	clone := os.NewFile(uintptr(device), "/dev/fuse")
	defer clone.Close()
	cmd := exec.Command("/proc/self/exe", Command) //nolint:gosec // ourselves
	cmd.Args[0] = os.Args[0]                       // as people know it
	cmd.Dir = "/"                                  // it keeps no file system busy
	cmd.Env = []string{"GOMAXPROCS=4", "GOGC=20"}  // it does next to nothing
	cmd.ExtraFiles = []*os.File{theirs, clone}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return -1, 0, errors.Join(err, unix.Close(pair[0]))
	}
	go func() { _ = cmd.Wait() }() // no zombie, should it end before this process
	return pair[0], cmd.Process.Pid, nil
}

// Run is the main function of the process. It returns when the server is gone.
func Run() error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE) // it ends with the server
	for {
		line, err := receiveLine(controlFD)
		if err != nil || line < 0 {
			return err
		}
		go serve(line)
	}
}

// receiveLine returns the next line; -1 behind the last.
func receiveLine(control int) (int, error) {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(control, b, oob, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, m, _, _, err = unix.Recvmsg(control, b, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n == 0 {
		return -1, err
	}
	list, err := unix.ParseSocketControlMessage(oob[:m])
	if err != nil {
		return -1, err
	}
	for i := range list {
		if fds, err := unix.ParseUnixRights(&list[i]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("a message without a line")
}

// serve answers a line until its end, on a thread of its own.
func serve(line int) {
	runtime.LockOSThread() // and never unlock it: its working directory is its own
	defer unix.Close(line)
	if unix.Unshare(unix.CLONE_FS) != nil {
		return
	}
	b := make([]byte, maxMessage)
	for {
		n, err := unix.Read(line, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		a := do(b[:n])
		if _, err := unix.Write(line, a[:]); err != nil {
			return
		}
	}
}

// answer is the error of a call, and for a Size whether the kernel knew it.
type answer [5]byte

func do(message []byte) (a answer) {
	var err error
	switch message[0] {
	case askNotify:
		_, err = unix.Write(deviceFD, message[1:])
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Write(deviceFD, message[1:])
		}
	case askSize:
		var s Size
		var known bool
		if err = json.Unmarshal(message[1:], &s); err == nil {
			known, err = s.Notify()
		}
		if known {
			a[4] = 1
		}
	default:
		err = unix.ENOSYS
	}
	if err != nil {
		errno := unix.EIO
		errors.As(err, &errno)
		a.setErrno(errno)
	}
	return a
}
