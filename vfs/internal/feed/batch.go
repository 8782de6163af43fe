package feed

import (
	"context"

	"ogw/vfs/internal/record"
)

// Batch is what one transaction will have changed. It is an effect of the
// transaction: Again, Failed or Committed is called when that is over.
type Batch struct {
	feed   *Feed
	events []Event
	// stored are inodes whose stored content moved without a change that
	// anybody in this process could see.
	stored []record.Ino
	moved  int // directories that get another name or parent
}

// Batch begins one.
func (f *Feed) Batch() Batch { return Batch{feed: f} }

// EntryChanged notes that the entry of a stored name comes, goes or changes.
func (b *Batch) EntryChanged(dir record.Ino, name string) {
	b.feed.changes.begin(dir)
	b.events = append(b.events, Event{Entry: true, Ino: dir, Name: name})
}

// InodeChanged notes a change of attributes and, with data, of content.
func (b *Batch) InodeChanged(ino record.Ino, data bool) {
	b.feed.changes.begin(ino)
	b.events = append(b.events, Event{Ino: ino, Data: data})
}

// DirMoved notes that a directory gets another place.
func (b *Batch) DirMoved(ino record.Ino) {
	b.feed.moves.begin()
	b.moved++
	b.feed.changes.begin(ino)
	b.events = append(b.events, Event{Ino: ino, Data: true, Moved: true})
}

// FileMoved is InodeChanged of a file that gets another directory, or loses one of
// several links.
func (b *Batch) FileMoved(ino record.Ino) {
	b.feed.fileClock(ino).begin()
	b.feed.changes.begin(ino)
	b.events = append(b.events, Event{Ino: ino, fileMoved: true})
}

// Stored notes that what the process had in memory of ino is in the store: only
// its open file is notified.
func (b *Batch) Stored(ino record.Ino) { b.stored = append(b.stored, ino) }

// Again ends an attempt that another one follows.
func (b *Batch) Again() { b.Failed() }

// Failed ends a transaction that changed nothing.
func (b *Batch) Failed() {
	b.endMoves()
	b.feed.changes.end(b.events)
}

// Committed tells of the changes, and ends a transaction that made them, or may
// have: then caches have to go as well.
func (b *Batch) Committed(ctx context.Context, known bool) {
	b.endMoves()
	for _, ino := range b.stored {
		b.feed.open(ino)
	}
	for i := range b.events {
		if e := &b.events[i]; !e.Entry {
			b.feed.open(e.Ino)
		}
	}
	b.feed.notify(ctx, known, b.events)
	b.feed.changes.end(b.events)
}

func (b *Batch) endMoves() {
	b.feed.moves.end(b.moved)
	for i := range b.events {
		if e := &b.events[i]; e.fileMoved {
			b.feed.fileClock(e.Ino).end(1)
		}
	}
}
