package local

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Enter has the folder name the gateway id, which its process is from now on, and returns those
// that it named before. Their processes have ended, or answer nobody any more as these: each
// held the lock that this one holds. It comes before anybody can learn of id.
//
// What says so is the lock, and nothing that is copied with a folder, or that another machine
// may have written: the file with the names says under which lock that was (heldLock). Where this
// is another one, none is returned. After an error the next process is told nothing of id.
func (f *Folder) Enter(id uint64) (before []uint64, err error) {
	if f.held == "" {
		return nil, nil
	}
	e, ok := readEntered(filepath.Join(f.dir, record.EnteredFile))
	if !ok || e.Lock != f.held {
		e = record.Entered{Lock: f.held}
	}
	before = e.IDs
	e.Enter(id)
	return before, fileio.Replace(fileio.PrivateFS{FS: vfs.Default}, f.dir, record.EnteredFile, e.Encode())
}

// readEntered returns what a file says, ok if it says anything.
func readEntered(path string) (e record.Entered, ok bool) {
	f, err := fileio.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return e, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, record.MaxEnteredBytes+1))
	if err != nil {
		return e, false
	}
	return record.DecodeEntered(b)
}

// ownFS are file systems that one kernel has to itself, that show a file as one inode, and that
// have no two inodes of one device and number. So a process holds a lock there until it ends or closes the
// file, and fstat tells which. Others may take a lock away from a process that runs (NFS),
// show the same file by a second inode, with locks of its own (overlays), show inodes of a
// snapshot by the same numbers (bcachefs; those of Btrfs have another device), or count with 32 bits (tmpfs).
var ownFS = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:  true,
	unix.XFS_SUPER_MAGIC:   true,
	unix.BTRFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC:  true,
	0x2fc12fc1:             true, // ZFS
}

// bootIDFile names a start of the kernel. Containers see that of their machine.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// heldLock tells a lock from all others that anybody holds at this start of the machine: by the
// inode, which stays as long as somebody has it open, whatever becomes of its name. It returns ""
// where that does not hold, or cannot be told.
func heldLock(lock *os.File) string {
	var fs unix.Statfs_t
	var inode unix.Stat_t
	boot, err := os.ReadFile(bootIDFile)
	if err != nil || unix.Fstatfs(int(lock.Fd()), &fs) != nil || unix.Fstat(int(lock.Fd()), &inode) != nil || !ownFS[uint32(fs.Type)] {
		return ""
	}
	return fmt.Sprintf("boot %s device %d inode %d", strings.TrimSpace(string(boot)), inode.Dev, inode.Ino)
}
