package audit

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// turnEvery is how often windows are looked at: a line that reports what
	// was left out comes at most so much late.
	turnEvery = 5 * time.Second
	// complainEvery is how often the log of the process reports that lines
	// cannot be written.
	complainEvery = time.Minute
)

// sink is where lines go.
type sink interface {
	// write takes a line with its end; it never waits for a network.
	write(c Class, line []byte) error
	// reopen follows a file that was renamed.
	reopen() error
	close() error
}

// Config of a Log.
type Config struct {
	// Admin, Access and Data switch classes on.
	Admin, Access, Data bool
	// File that lines are appended to, Syslog the address of a server
	// instead; see OpenSyslog.
	File   string
	Syslog string
	// FileBytes is the size from which a file is renamed to FILE.1 and a new
	// one begun; Keep is how many of the old ones stay.
	FileBytes int64
	Keep      int
	// Logger gets what cannot be written; never nil.
	Logger *slog.Logger
}

// Stats of a Log since it was opened.
type Stats struct {
	Lines      map[Class]uint64
	Suppressed uint64 // refusals that were counted and not written one by one
	Failed     uint64 // lines that could not be written
}

// Log writes what is recorded. A nil Log takes everything and does nothing.
type Log struct {
	cfg  Config
	done chan struct{}
	wait sync.WaitGroup

	mu         sync.Mutex
	sink       sink
	limit      limiter
	stats      Stats
	lost       uint64 // lines that a line Lost has to report
	complained time.Time
	closed     bool
}

// Open begins a log; nil if no class is switched on. Without room on the
// medium it begins all the same, and writes when there is some.
func Open(c Config) (*Log, error) {
	if !c.Admin && !c.Access && !c.Data {
		return nil, nil
	}
	l := &Log{cfg: c, done: make(chan struct{}), stats: Stats{Lines: map[Class]uint64{}}}
	l.limit.start = time.Now()
	var err error
	if c.Syslog != "" {
		l.sink, err = openSyslog(c.Syslog, l.lostLines)
	} else {
		l.sink, err = openFile(c.File, c.FileBytes, c.Keep)
	}
	if err != nil {
		return nil, err
	}
	l.wait.Go(l.run)
	return l, nil
}

// Wants reports whether anything of a class is written: what costs something
// to find out need not be found out for others.
func (l *Log) Wants(c Class) bool {
	if l == nil {
		return false
	}
	switch c {
	case Admin:
		return l.cfg.Admin
	case Access:
		return l.cfg.Access
	case Data:
		return l.cfg.Data
	}
	return false
}

// Record writes e, if its class is switched on. What was refused is of the
// class Access, whatever it would have been. It may be called at any time and
// by many.
func (l *Log) Record(e Event) {
	if e.Result == Refused {
		e.Class = Access
	}
	if !l.Wants(e.Class) {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if (e.Class == Access || e.Class == Admin && e.Result == Failed) && !l.admit(e.From) {
		return
	}
	if e.Fill != nil {
		e.Fill(&e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := e.Keys; ; {
		n := lineOf(rest)
		e.Keys, rest = rest[:n], rest[n:]
		if l.write(&e); len(rest) == 0 {
			return
		}
	}
}

// admit asks the limiter, and counts what it leaves out.
func (l *Log) admit(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit.admit(from) {
		return true
	}
	l.stats.Suppressed++
	return false
}

// write hands a line to the sink. mu is held.
func (l *Log) write(e *Event) {
	if l.closed {
		l.failed(1, errors.New("the audit log is closed"))
		return
	}
	if l.lost > 0 {
		told := Event{Time: e.Time, Class: Admin, Door: "process", Operation: "Lost", UID: NoUID, Result: Failed, Count: l.lost}
		if err := l.sink.write(told.Class, encode(&told)); err == nil {
			l.lost = 0
		}
	}
	if err := l.sink.write(e.Class, encode(e)); err != nil {
		l.failed(1, err)
		return
	}
	l.stats.Lines[e.Class]++
}

// failed counts lines that could not be written. mu is held.
func (l *Log) failed(n uint64, err error) {
	l.stats.Failed += n
	l.lost += n
	if now := time.Now(); now.Sub(l.complained) >= complainEvery {
		l.complained = now
		l.cfg.Logger.Error("the audit log cannot be written; what happens meanwhile is missing from it", "lines", l.stats.Failed, "error", err)
	}
}

// lostLines counts lines that a sink had taken and lost.
func (l *Log) lostLines(n uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed(n, err)
}

// run reports from time to time what was left out.
func (l *Log) run() {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case now := <-tick.C:
			l.turn(now, false)
		}
	}
}

func (l *Log) turn(now time.Time, atOnce bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.limit.turn(now, atOnce) {
		l.write(&e)
	}
}

// Reopen begins a new file where the old one was renamed.
func (l *Log) Reopen() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.sink.reopen(); err != nil && !l.closed {
		l.cfg.Logger.Error("the audit log cannot be opened again", "error", err)
	}
}

// Stats returns figures.
func (l *Log) Stats() Stats {
	out := Stats{Lines: map[Class]uint64{Admin: 0, Access: 0, Data: 0}}
	if l == nil {
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, n := range l.stats.Lines {
		out.Lines[c] = n
	}
	out.Suppressed, out.Failed = l.stats.Suppressed, l.stats.Failed
	return out
}

// Close reports what was left out and ends the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	close(l.done)
	l.wait.Wait()
	l.turn(time.Now(), true)
	l.mu.Lock()
	s := l.sink
	l.closed = true
	l.mu.Unlock()
	return s.close() // without the lock: a sink may report lost lines
}
