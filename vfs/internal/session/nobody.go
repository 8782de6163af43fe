package session

import (
	"context"
	"time"

	"ogw/cluster"
)

// nobody is the Peers of a process that is told nothing, and tells nobody.
type nobody struct{}

func (nobody) Me() (string, []byte)                                           { return "", nil }
func (nobody) Join(uint64, func(context.Context) error, func(settled func())) {}
func (nobody) Look(ctx context.Context, look func(context.Context) ([]cluster.Peer, bool, error)) error {
	_, _, err := look(ctx)
	return err
}
func (nobody) Introduce(context.Context, []uint64) error { return nil }
func (nobody) Told() bool                                { return false }
func (nobody) Forget()                                   {}
func (nobody) Moment() cluster.Moment                    { return 0 }
func (nobody) Keep(cluster.Moment, uint64, ...[]byte) time.Duration {
	return 0
}
func (nobody) OnRecall(func([]uint64)) {}
func (nobody) Close() error            { return nil }
