package rpc

import (
	"encoding/binary"
	"time"
)

// lane answers calls on the connection's reader, from the record where it
// lies to the buffer that is sent. It makes one reply of many: what it
// answered while more calls had arrived already goes out in one write.
type lane struct {
	call  Call  // the one that is being answered
	reply Reply // to it
	batch *Call // holds the replies not sent yet, in one slot; nil: none

	// Of the batch:
	calls int
	bytes int       // of their records
	begun time.Time // when the first of them was looked at
	run   Event     // the last of them that are of one procedure, not observed yet
}

const (
	// laneBytes of replies are sent at the latest: those to all calls that
	// the read buffer holds.
	laneBytes = readBufferBytes
	// laneReply is room for the reply of a quick procedure; a longer one is
	// moved.
	laneReply = 512
	// progWord and procWord are where the numbers stand in a call (RFC 5531
	// section 9), callHead is what stands before the credential.
	progWord = 12
	procWord = 20
	callHead = 24
)

// quick answers the call in rec, if its procedure can answer at once.
func (c *conn) quick(rec []byte) bool {
	if len(rec) < callHead {
		return false
	}
	prog := c.srv.programs[binary.BigEndian.Uint32(rec[progWord:])]
	proc := binary.BigEndian.Uint32(rec[procWord:])
	if prog == nil || proc >= uint32(len(prog.Procs)) || prog.Procs[proc].Quick == nil {
		return false
	}
	l := &c.lane
	call := &l.call
	if denied, err := call.parse(rec); err != nil || denied != nil || call.Vers < prog.Low || call.Vers > prog.High {
		return false
	}
	if !c.openBatch() {
		return false
	}
	call.conn, call.Remote, call.Local, call.start, call.proc = c, c.remote, c.local, l.begun, &prog.Procs[proc]
	out := &l.batch.reply
	n := len(out.B)
	l.reply.B = out.B[n : n+headerBytes]
	if !call.tryQuick(&l.reply) {
		return false
	}
	l.reply.finish(call.XID, Success)
	out.B = append(out.B[:n], l.reply.B...) // in place, unless it was longer than laneReply
	c.note(&call.Cred)
	c.batched(len(rec), len(l.reply.B))
	if len(out.B)+laneReply > laneBytes {
		c.flush()
	}
	return true
}

// openBatch makes sure that there is one, with room for a reply; false if the
// connection ends.
func (c *conn) openBatch() bool {
	if c.lane.batch != nil {
		return true
	}
	if c.takeSlots() != nil {
		return false
	}
	c.inFlight.Add(1)
	b := callPool.Get().(*Call)
	*b = Call{conn: c}
	b.reply.head = GetBuffer(laneBytes)
	b.reply.B = b.reply.head.B[:0]
	c.lane.batch, c.lane.begun = b, time.Now()
	return true
}

// tryQuick survives a panic, which Handle will meet again and report.
func (c *Call) tryQuick(r *Reply) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	r.Status, r.payload = 0, nil
	return c.proc.Quick(c, c.Args, r)
}

// batched counts a call that was answered.
func (c *conn) batched(in, out int) {
	l := &c.lane
	if l.run.Calls > 0 && (l.run.Proc != l.call.Proc || l.run.Prog != l.call.Prog) {
		c.observe()
	}
	l.run.Prog, l.run.Proc, l.run.Accept = l.call.Prog, l.call.Proc, Success
	l.run.Calls++
	l.run.In += in
	l.run.Out += out
	l.calls++
	l.bytes += in
}

// observe reports the calls of one procedure. Each took as long as the batch
// so far: none of the replies has left.
func (c *conn) observe() {
	l := &c.lane
	if l.run.Calls > 0 && c.srv.cfg.Observe != nil {
		l.run.Duration = time.Since(l.begun)
		c.srv.cfg.Observe(l.run)
	}
	l.run = Event{}
}

// flush sends the batch, if there is one.
func (c *conn) flush() {
	l := &c.lane
	b := l.batch
	if b == nil {
		return
	}
	c.observe()
	c.calls.Add(uint64(l.calls))
	c.in.Add(uint64(l.bytes))
	l.batch, l.calls, l.bytes = nil, 0, 0
	if len(b.reply.B) == 0 {
		c.release(b) // nothing could be answered at once
		return
	}
	c.send(b)
}
