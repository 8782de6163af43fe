package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/terminal"
)

const (
	// lineEvery is how often a terminal's line is drawn anew, and logEvery how
	// often a line is added where nobody looks.
	lineEvery = 200 * time.Millisecond
	logEvery  = 30 * time.Second
)

// progressLine shows how far a backup or a restore is.
type progressLine struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	began    time.Time
	last     time.Time
	drawn    bool
}

func newProgressLine(w io.Writer) *progressLine {
	now := time.Now()
	return &progressLine{w: w, terminal: terminal.Is(w), began: now, last: now}
}

// show gets every progress, and shows some of it.
func (l *progressLine) show(p backup.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	every := logEvery
	if l.terminal {
		every = lineEvery
	}
	now := time.Now()
	if now.Sub(l.last) < every {
		return
	}
	l.last = now
	text := fmt.Sprintf("%s: %d records", p.Step, p.Records)
	if p.AllBlobs > 0 {
		text += fmt.Sprintf(", %d of %d blobs, %s of %s", p.Blobs, p.AllBlobs, bytesText(p.Bytes), bytesText(p.AllBytes))
	}
	text += fmt.Sprintf("; %s in %v", bytesText(p.Moved), now.Sub(l.began).Round(time.Second))
	if left := remaining(p, now.Sub(l.began)); left > 0 {
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	if l.terminal {
		fmt.Fprintf(l.w, "\r\x1b[K%s", text)
		l.drawn = true
		return
	}
	fmt.Fprintln(l.w, text)
}

// remaining guesses by the bytes that are done.
func remaining(p backup.Progress, took time.Duration) time.Duration {
	if p.Bytes <= 0 || p.AllBytes <= p.Bytes {
		return 0
	}
	return time.Duration(float64(took) * float64(p.AllBytes-p.Bytes) / float64(p.Bytes))
}

// end leaves the line.
func (l *progressLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}
