package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
)

// nobodyGID is the group of a uid that the machine's files do not know.
const nobodyGID = 65534

// groupsOf returns the groups that a login of the uid would have.
func groupsOf(uid uint32) (gid uint32, groups []uint32, err error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	var unknown user.UnknownUserIdError
	if errors.As(err, &unknown) {
		return nobodyGID, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	primary, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return 0, nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return 0, nil, err
	}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return 0, nil, err
		}
		groups = append(groups, uint32(n))
	}
	return uint32(primary), groups, nil
}

// overflowUID is what the kernel shows of uids that have none in the user
// namespace of this process: all users outside are one. 0: this is the first
// namespace, in which every uid is what it is.
var overflowUID = sync.OnceValue(func() uint32 {
	all, err := os.ReadFile("/proc/self/uid_map")
	if f := bytes.Fields(all); err == nil && len(f) == 3 && string(f[0]) == "0" && string(f[1]) == "0" && string(f[2]) == "4294967295" {
		return 0
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err == nil {
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32); err == nil {
			return uint32(n)
		}
	}
	return nobodyGID
})

// checkMapped refuses the uid that stands for many.
func checkMapped(uid uint32) error {
	if o := overflowUID(); o != 0 && uid == o {
		return fmt.Errorf("%w: a user outside of this user namespace", ErrUnknown)
	}
	return nil
}
