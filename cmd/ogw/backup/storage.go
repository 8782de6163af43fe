package backup

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of a Storage and a Repository.
var (
	// ErrNotExist means that there is no such object or snapshot.
	ErrNotExist = errors.New("does not exist")
	// ErrExist means that there is one already.
	ErrExist = errors.New("exists already")
	// ErrLocked means that another process writes to the repository.
	ErrLocked = errors.New("the repository is in use")
	// ErrLockLost means that another process may write to the repository, too.
	ErrLockLost = errors.New("the lock of the repository was lost")
	// ErrDamaged means that something in the repository is not what was written.
	ErrDamaged = errors.New("the repository is damaged")
	// ErrAmbiguous means that a snapshot must be named.
	ErrAmbiguous = errors.New("which snapshot is meant is not clear")
	// ErrFormat means that it is no repository, or one of a newer version.
	ErrFormat = errors.New("cannot be used as a backup repository")
)

// Storage is where a repository lies. It is safe for concurrent use.
type Storage interface {
	// Put stores an object, durably, all of it or nothing; ErrExist, unless
	// replace.
	Put(ctx context.Context, name string, data []byte, replace bool) error
	// Get returns n bytes from off on, fewer at the end; all with n < 0.
	// ErrNotExist.
	Get(ctx context.Context, name string, off, n int64) ([]byte, error)
	// List calls fn for the objects whose names begin with prefix, which ends in
	// a slash or is "", in the order of the names.
	List(ctx context.Context, prefix string, fn func(Object) error) error
	// Delete removes an object; an absent one is no error.
	Delete(ctx context.Context, name string) error
	// Lock makes this process the only writer until it is released; ErrLocked. The
	// context that it returns ends when the lock is seen to be lost.
	Lock(ctx context.Context, who Holder) (locked context.Context, lock Lock, err error)
	// String names it for people.
	String() string
}

// getPart returns an object that a snapshot consists of: nothing but damage removes it.
func getPart(ctx context.Context, s Storage, name string) ([]byte, error) {
	b, err := s.Get(ctx, name, 0, -1)
	if errors.Is(err, ErrNotExist) {
		err = fmt.Errorf("%w: %s is missing", ErrDamaged, name)
	}
	return b, err
}

// Lock is held by the only writer of a repository.
type Lock interface {
	// Renew returns an error if the lock is not held any more: the process may have
	// stood still for so long that another one took it. ErrLockLost.
	Renew(ctx context.Context) error
	// Release ends it.
	Release()
}

// Object is one object of a Storage.
type Object struct {
	Name string
	Size int64 // bytes
}

// Holder is who holds the lock.
type Holder struct {
	What  string    `json:"what"` // "backup", "prune"
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Machine is this start of the machine and this PID namespace, Start when the
	// process began there, in clock ticks: by them others see that it ended.
	Machine string `json:"machine"`
	Start   string `json:"start"`
	// Beat counts the times that it showed that it is alive.
	Beat int `json:"beat"`
}

func (h Holder) err() error {
	return fmt.Errorf("%w: %s by process %d on %s since %s", ErrLocked, h.What, h.PID, h.Host, h.Since.Local().Format(time.DateTime))
}
