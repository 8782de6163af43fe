package coherence

import "context"

// Change is one of pairs that a client is about to make.
type Change struct {
	c      *Client
	lines  []Line
	at     uint64
	finish func()
}

// Announce returns when no client answers from memory what keys are. Then they may be
// changed, and Done or Failed is called. If it returns an error, which is that of ctx, they
// must not be.
func (c *Client) Announce(ctx context.Context, keys ...[]byte) (*Change, error) {
	if c == nil {
		return nil, nil
	}
	d := &Change{c: c, lines: linesOf(keys)}
	d.at = c.trust.begin(d.lines)
	c.loans.recall(d.lines)
	var err error
	if d.finish, err = c.tells.announce(ctx, d.lines); err != nil {
		c.trust.end(d.lines, d.at)
		return nil, err
	}
	return d, nil
}

// Done ends a change that was made. It returns the stamp of what was written, 0 if somebody
// else may have written it, too.
func (d *Change) Done() Stamp {
	if d == nil {
		return 0
	}
	s := d.c.trust.end(d.lines, d.at)
	d.finish()
	return s
}

// Failed ends one that was not made. If that is unknown, it ends when no transaction of before
// can commit any more.
func (d *Change) Failed(unknown bool) {
	if d == nil {
		return
	}
	if !unknown {
		d.Done()
		return
	}
	d.c.mu.Lock()
	doubt := d.c.doubt
	d.c.mu.Unlock()
	if doubt != nil {
		doubt(func() { d.Done() })
	}
}
