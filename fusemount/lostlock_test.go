package fusemount

import (
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/ledger"
	"ogw/vfs/lock"
)

// locked returns whether anything of the file is locked, and how many locks are on the books.
func (k *killed) locked() (held bool, kept int) {
	k.Helper()
	_, held, err := k.fs.Locks().Test(bg, uint64(k.file), lock.Range, lock.Lock{Owner: lock.Owner{Client: "another"}, Type: lock.Exclusive, End: lock.EOF})
	must(k.T, err)
	k.book.Locks.Each(func(uint64, uint8, ledger.Lock) { kept++ })
	return held, kept
}

// The next server takes back what programs hold, and not what is of an open file that is
// closed: then its lock was given up, too, and the store may not have known.
func TestLockTakenBack(t *testing.T) {
	k := begin(t, "text")
	fh := k.open(2, unix.O_RDWR)
	st := k.SetLk(nil, &fuse.LkIn{InHeader: header(4, k.file), Fh: fh, Owner: 7, Lk: fuse.FileLock{End: lock.EOF, Typ: unix.F_WRLCK}})
	if !st.Ok() {
		t.Fatal(st)
	}
	if k.next(nil); t.Failed() {
		return
	}
	if held, kept := k.locked(); !held || kept != 1 {
		t.Errorf("held %v, %d on the books", held, kept)
	}
	k.book.Owners.Remove(fh, uint8(lock.Range), 7)
	k.next(nil)
	if held, kept := k.locked(); held || kept != 0 {
		t.Errorf("of a closed file: held %v, %d on the books", held, kept)
	}
}
