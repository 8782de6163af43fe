// Command locker takes fcntl locks, in the virtual machine and beside it.
//
//	locker try  FILE TYPE START LENGTH               takes and gives up; exit code 3: somebody else has it
//	locker test FILE TYPE START LENGTH               prints who would be in the way (F_GETLK)
//	locker hold FILE TYPE START LENGTH READY [END]   waits for the lock, makes the file READY, holds until END exists
//
// TYPE is r or w; LENGTH 0 means to the end of the file. Without END the lock
// is held until the process ends.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const exitBusy = 3

func main() {
	err := run(os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		fmt.Println("busy")
		os.Exit(exitBusy)
	default:
		fmt.Println("locker:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return errors.New("too few arguments")
	}
	start, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	length, err := strconv.ParseInt(args[4], 10, 64)
	if err != nil {
		return err
	}
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: start, Len: length}
	if args[2] == "r" {
		l.Type = syscall.F_RDLCK
	}
	f, err := os.OpenFile(args[1], os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	switch args[0] {
	case "try":
		return fcntl(f, syscall.F_SETLK, &l)
	case "test":
		err := fcntl(f, syscall.F_GETLK, &l)
		fmt.Printf("type %s start %d length %d\n", map[int16]string{syscall.F_RDLCK: "r", syscall.F_WRLCK: "w",
			syscall.F_UNLCK: "none"}[l.Type], l.Start, l.Len)
		return err
	case "hold":
		return hold(f, &l, args[5:])
	}
	return fmt.Errorf("no command %q", args[0])
}

func hold(f *os.File, l *syscall.Flock_t, files []string) error {
	if len(files) == 0 {
		return errors.New("which file tells that the lock is held?")
	}
	if err := fcntl(f, syscall.F_SETLKW, l); err != nil {
		return err
	}
	if err := os.WriteFile(files[0], nil, 0o666); err != nil {
		return err
	}
	for len(files) < 2 {
		time.Sleep(time.Hour)
	}
	for {
		if _, err := os.Stat(files[1]); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func fcntl(f *os.File, cmd int, l *syscall.Flock_t) error {
	for {
		err := syscall.FcntlFlock(f.Fd(), cmd, l)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
