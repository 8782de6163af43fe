package vfs

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// fewCalls is an engine that has few calls under way, as one with a pool of connections: the
// others wait, but for urgent ones.
type fewCalls struct {
	cluster.KV
	calls chan struct{}
}

func (kv *fewCalls) call(ctx context.Context, fn func() error) error {
	if cluster.IsUrgent(ctx) {
		return fn()
	}
	select {
	case kv.calls <- struct{}{}:
		defer func() { <-kv.calls }()
		return fn()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (kv *fewCalls) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return kv.call(ctx, func() error { return kv.KV.Update(ctx, fn) })
}

func (kv *fewCalls) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.call(ctx, func() error { return kv.KV.View(ctx, fn) })
}

func (kv *fewCalls) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.call(ctx, func() error { return kv.KV.Peek(ctx, fn) })
}

// Many more clients than an engine has connections: none waits in a transaction for what needs
// one of its own.
func TestFewConnections(t *testing.T) {
	const clients, connections = 24, 3
	c := mem.New(mem.Options{})
	c.KV = &fewCalls{c.KV, make(chan struct{}, connections)}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	fs, err := Open(ctx, c, Config{})
	want(t, err, nil)
	_, err = fs.CreateBucket(ctx, "bucket", Root)
	want(t, err, nil)
	end := time.Now().Add(5 * time.Second)
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				if err := fewCallsRound(ctx, fs, client, i); err != nil {
					t.Errorf("client %d, round %d: %v", client, i, err)
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(50 * time.Second):
		t.Fatal("the clients wait for one another")
	}
	want(t, fs.Close(ctx), nil)
	want(t, c.Close(), nil)
}

// fewCallsRound does a little of everything, in one directory that all share.
func fewCallsRound(ctx context.Context, fs *FS, client, i int) error {
	name := fmt.Sprintf("%d-%d", client, i)
	dir, err := fs.Resolve(ctx, Root, "bucket", true)
	if err != nil {
		return err
	}
	a, f, _, err := fs.Create(ctx, Root, dir.Ino, name, CreateOptions{Mode: 0o644, Flags: OpenWrite | OpenRead})
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(ctx, []byte("some text"), 0); err != nil {
		return err
	}
	if err := f.Close(ctx); err != nil {
		return err
	}
	if _, err := fs.GetAttr(ctx, a.Ino); err != nil {
		return err
	}
	if _, err := fs.PutObject(ctx, ObjectName{Bucket: "bucket", Key: "below/" + name}, bytes.NewReader([]byte("object")), PutOptions{Owner: Root, Size: 6}); err != nil {
		return err
	}
	if err := fs.Rename(ctx, Root, EntryName{Dir: dir.Ino, Name: name}, EntryName{Dir: dir.Ino, Name: "moved-" + name}, 0); err != nil {
		return err
	}
	if i%2 == 0 {
		return nil
	}
	return fs.Unlink(ctx, Root, dir.Ino, "moved-"+name)
}
