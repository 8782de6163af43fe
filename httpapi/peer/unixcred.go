package peer

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noUID is what the kernel reports where there is no user.
const noUID = ^uint32(0)

// maxGroups is Linux's NGROUPS_MAX.
const maxGroups = 65536

// ofSocket returns what the kernel noted of the process that connected.
func ofSocket(c *net.UnixConn) (who Identity, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return who, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		if who.UID, who.GID, who.PID = cred.Uid, cred.Gid, int(cred.Pid); who.UID == noUID {
			failed = ErrUnknown // nobody was at the other end
			return
		}
		who.Groups, failed = peerGroups(int(fd))
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = checkMapped(who.UID)
	}
	return who, err
}

// peerGroups is SO_PEERGROUPS, for which x/sys has no function.
func peerGroups(fd int) ([]uint32, error) {
	for n := uint32(32); ; n = maxGroups {
		groups := make([]uint32, n)
		size := n * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno != unix.ERANGE || n == maxGroups:
			return nil, errno
		}
	}
}
