//go:build ceph

package librados

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ogw/cluster"
	cephpool "ogw/cluster/rados"

	"github.com/ceph/go-ceph/rados"
)

// Pool implements the interface of that name of package ogw/cluster/rados.
type Pool struct {
	conn    *rados.Conn
	io      *rados.IOContext
	id      int64 // of the pool: another one may get its name
	options Options
	slots   chan struct{}
	wg      sync.WaitGroup // requests under way
	// silent is set while the last request was given up after the timeout.
	silent atomic.Bool
}

// String implements fmt.Stringer.
func (p *Pool) String() string {
	return fmt.Sprintf("pool %s, namespace %s", p.options.Pool, p.options.Namespace)
}

// Close implements rados.Pool.
func (p *Pool) Close() error {
	p.wg.Wait()
	p.io.Destroy()
	p.conn.Shutdown()
	return nil
}

// errLeft: the caller no longer waits for a request, which may be done all the same.
var errLeft = errors.New("left")

// do makes a request, and returns before it is done when ctx ends (errLeft), or after
// impatience while the pool is silent. One that was not begun by then, or gets no slot within
// the pool's timeout, is never made: placement groups that do not answer may have all slots while
// others answer, so that the pool is not silent. release is called when the request is over, or never will be made.
func (p *Pool) do(ctx context.Context, request func() error, release func()) error {
	var late <-chan time.Time
	if p.silent.Load() {
		timer := time.NewTimer(impatience)
		defer timer.Stop()
		late = timer.C
	}
	left := func() error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", errLeft, err)
		}
		return fmt.Errorf("%w: %w: nothing in pool %s answers", errLeft, cluster.ErrUnavailable, p.options.Pool)
	}
	full := time.NewTimer(p.options.Timeout)
	defer full.Stop()
	select {
	case p.slots <- struct{}{}:
	case <-full.C:
		release()
		return fmt.Errorf("%w: %w: %d requests to pool %s are under way, and none ended for %v", errLeft, cluster.ErrUnavailable,
			cap(p.slots), p.options.Pool, p.options.Timeout)
	case <-ctx.Done():
		release()
		return left()
	case <-late:
		release()
		return left()
	}
	done, gone := make(chan error, 1), make(chan struct{})
	p.wg.Go(func() {
		defer func() { <-p.slots }()
		defer release()
		select {
		case <-gone:
		default:
			done <- request()
		}
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	case <-late:
	}
	close(gone)
	return left()
}

// answered notes whether the pool answers, and returns err.
func (p *Pool) answered(err error) error {
	p.silent.Store(codeOf(err) == syscall.ETIMEDOUT)
	return err
}

// write makes a request that changes an object. It is built before it is sent, by
// copies of what it writes.
func (p *Pool) write(ctx context.Context, name string, build func(op *rados.WriteOp)) error {
	op := rados.CreateWriteOp()
	build(op)
	return p.do(ctx, func() error { return p.answered(op.Operate(p.io, name, rados.OperationFullTry)) }, op.Release)
}

// Create implements rados.Objects.
func (p *Pool) Create(ctx context.Context, name string, data []byte) error {
	return p.mapError(name, p.write(ctx, name, func(op *rados.WriteOp) {
		op.Create(rados.CreateExclusive)
		op.WriteFull(data)
	}))
}

// maxErrno is where the errors of a comparison begin: what is behind it is the place of the
// first byte that differs.
const maxErrno = 4095

// Replace implements rados.Objects.
func (p *Pool) Replace(ctx context.Context, name string, old, data []byte) (bool, error) {
	err := p.write(ctx, name, func(op *rados.WriteOp) {
		op.CmpExt(old, 0)
		op.WriteFull(data)
	})
	if codeOf(err) >= maxErrno {
		return false, nil
	}
	return err == nil, p.mapError(name, err)
}

// Remove implements rados.Objects.
func (p *Pool) Remove(ctx context.Context, name string) error {
	return p.mapError(name, p.write(ctx, name, func(op *rados.WriteOp) { op.Remove() }))
}

// Add implements rados.Index.
func (p *Pool) Add(ctx context.Context, name, key string, value []byte) error {
	return p.mapError(name, p.write(ctx, name, func(op *rados.WriteOp) { op.SetOmap(map[string][]byte{key: value}) }))
}

// Drop implements rados.Index.
func (p *Pool) Drop(ctx context.Context, name string, keys ...string) error {
	err := p.mapError(name, p.write(ctx, name, func(op *rados.WriteOp) {
		op.AssertExists() // else it would make the object
		op.RmOmapKeys(keys)
	}))
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// Entries implements rados.Index.
func (p *Pool) Entries(ctx context.Context, name, after string, n int) (entries []cephpool.Entry, more bool, err error) {
	type page struct {
		entries []cephpool.Entry
		more    bool
	}
	got := make(chan page, 1)
	op := rados.CreateReadOp()
	err = p.do(ctx, func() error {
		step := op.GetOmapValues(after, "", uint64(n))
		if err := p.answered(op.Operate(p.io, name, rados.OperationNoFlag)); err != nil {
			return err
		}
		found := page{more: step.More()}
		for {
			pair, err := step.Next()
			if err != nil {
				return err
			}
			if pair == nil {
				got <- found
				return nil
			}
			found.entries = append(found.entries, cephpool.Entry{Key: pair.Key, Value: pair.Value})
		}
	}, op.Release)
	if err = p.mapError(name, err); errors.Is(err, cluster.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	found := <-got
	return found.entries, found.more, nil
}

// Read implements rados.Objects. The buffer is the request's until it is done, whenever
// that is.
func (p *Pool) Read(ctx context.Context, name string, fn func(parts [][]byte) error, spans ...cephpool.Span) error {
	total := 0
	for _, s := range spans {
		total += int(s.Len)
	}
	buf := newBuffer(total)
	parts := make([][]byte, len(spans))
	op := rados.CreateReadOp()
	err := p.do(ctx, func() error {
		steps, rest := make([]*rados.ReadOpReadStep, len(spans)), (*buf)[:total]
		for i, s := range spans {
			parts[i], rest = rest[:s.Len], rest[s.Len:]
			steps[i] = op.Read(uint64(s.Off), parts[i])
		}
		if err := p.answered(op.Operate(p.io, name, rados.OperationNoFlag)); err != nil {
			return err
		}
		for i, step := range steps {
			if step.Result < 0 {
				return fmt.Errorf("%w: read of %v: %w", cluster.ErrUnavailable, spans[i], syscall.Errno(-step.Result))
			}
			parts[i] = parts[i][:step.BytesRead]
		}
		return nil
	}, op.Release)
	if !errors.Is(err, errLeft) { // else the request may still fill it
		defer buffers.Put(buf)
	}
	if err != nil {
		return p.mapError(name, err)
	}
	return fn(parts)
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// newBuffer returns one of at least n bytes.
func newBuffer(n int) *[]byte {
	b := buffers.Get().(*[]byte)
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	*b = (*b)[:cap(*b)]
	return b
}
