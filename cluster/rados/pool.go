package rados

import (
	"context"

	"ogw/cluster"
)

// Pool is the objects of a store: those of one namespace of a pool. Each method is one step,
// done whole or not at all, and durable when it returns nil. A caller whose context ends
// is let go; what it asked for may be done all the same, as after ErrUnavailable. The
// bytes that a caller hands over are its own again when a method returns.
type Pool interface {
	Objects
	Index
	// Locate reports who holds an object, or would.
	Locate(ctx context.Context, name string) ([]cluster.Location, error)
	// Usage reports how full the pool is.
	Usage(ctx context.Context) (cluster.Usage, error)
	// String names the pool, for people.
	String() string
	// Close waits for what is under way.
	Close() error
}

// Objects are names and their bytes. What does not exist is ErrNotFound, but not if the
// pool is gone.
type Objects interface {
	// Create makes an object, which must not exist: ErrExists.
	Create(ctx context.Context, name string, data []byte) error
	// Replace replaces the bytes of an object if they are old, of the same length, and
	// reports whether they were.
	Replace(ctx context.Context, name string, old, data []byte) (bool, error)
	// Read calls fn with the bytes of each span, fewer where the object ends before. They
	// are fn's until it returns.
	Read(ctx context.Context, name string, fn func(parts [][]byte) error, spans ...Span) error
	// Remove removes an object.
	Remove(ctx context.Context, name string) error
}

// Span is a range of an object, of at least a byte.
type Span struct{ Off, Len int64 }

// Index are objects that hold sorted pairs. One that was never added to is empty.
type Index interface {
	Add(ctx context.Context, name, key string, value []byte) error
	// Drop removes pairs; absent ones are no error.
	Drop(ctx context.Context, name string, keys ...string) error
	// Entries returns up to n pairs behind the key after, in the order of their keys. more
	// reports whether there may be others.
	Entries(ctx context.Context, name, after string, n int) (entries []Entry, more bool, err error)
}

// Entry is a pair of an Index.
type Entry struct {
	Key   string
	Value []byte
}
