package feed

import (
	"context"
	"slices"
	"testing"

	"ogw/vfs/internal/record"
)

// told records the notifications of an Invalidator and the open files.
type told struct {
	f     *Feed
	lines []string
}

func (t *told) InvalidateEntry(dir record.Ino, name string) { t.add("entry "+name, dir) }
func (t *told) InvalidateInode(ino record.Ino, data bool)   { t.add("inode", ino) }

// add notes with a mark what is notified while the change still counts as running.
func (t *told) add(what string, ino record.Ino) {
	if begun, ended := t.f.Changes(ino); begun != ended {
		what += " (running)"
	}
	t.lines = append(t.lines, what)
}

func newTold(complete bool) *told {
	t := &told{}
	t.f = New(complete, nil, func(ino record.Ino) { t.add("open file", ino) })
	t.f.Watch(t)
	return t
}

func TestBatchTellsOpenFilesFirstAndCountsLast(t *testing.T) {
	w := newTold(true)
	b := w.f.Batch()
	b.InodeChanged(7, true)
	b.EntryChanged(3, "a")
	b.Stored(9)
	b.Committed(context.Background(), true)
	want := []string{"open file", "open file (running)", "inode (running)", "entry a (running)", "entry .ogw~f~a (running)", "inode (running)"}
	if !slices.Equal(w.lines, want) {
		t.Errorf("told %q, want %q", w.lines, want)
	}
	for _, ino := range []record.Ino{3, 7} {
		if begun, ended := w.f.Changes(ino); begun != 1 || ended != 1 {
			t.Errorf("inode %d: %d changes begun, %d ended; want 1 and 1", ino, begun, ended)
		}
	}
}

func TestBatchWithoutCommitTellsNobody(t *testing.T) {
	w := newTold(true)
	for _, end := range []func(*Batch){(*Batch).Again, (*Batch).Failed} {
		b := w.f.Batch()
		before := w.f.MoveStamp()
		b.EntryChanged(3, "a")
		b.DirMoved(5)
		if w.f.Unmoved(before) {
			t.Error("unmoved while a rename runs")
		}
		end(&b)
		if begun, ended := w.f.Changes(3); begun != ended {
			t.Errorf("%d changes begun, %d ended", begun, ended)
		}
	}
	if len(w.lines) > 0 {
		t.Errorf("told %q", w.lines)
	}
}

func TestFileMoved(t *testing.T) {
	w := newTold(false)
	const moved, other = 7, 8
	for end, fn := range map[string]func(*Batch){
		"again":     (*Batch).Again,
		"failed":    (*Batch).Failed,
		"committed": func(b *Batch) { b.Committed(context.Background(), true) },
	} {
		dirs, file, beside := w.f.MoveStamp(), w.f.MoveStampOf(moved), w.f.MoveStampOf(other)
		if !w.f.Unmoved(file) {
			t.Errorf("%s: moved before", end)
		}
		b := w.f.Batch()
		b.InodeChanged(moved, true)
		if !w.f.Unmoved(file) {
			t.Errorf("%s: a change of attributes is a move", end)
		}
		b.FileMoved(moved)
		during := w.f.MoveStampOf(moved)
		if w.f.Unmoved(file) {
			t.Errorf("%s: unmoved while the move runs", end)
		}
		fn(&b)
		if w.f.Unmoved(file) || w.f.Unmoved(during) {
			t.Errorf("%s: unmoved since before the end", end)
		}
		if !w.f.Unmoved(dirs) || !w.f.Unmoved(beside) {
			t.Errorf("%s: the move of a file is one of directories, or of another file", end)
		}
		b = w.f.Batch()
		b.DirMoved(3)
		b.Committed(context.Background(), true)
		if w.f.Unmoved(dirs) || w.f.Unmoved(beside) {
			t.Errorf("%s: the move of a directory is none of what lies there", end)
		}
	}
}

func TestOriginIsNotTold(t *testing.T) {
	w := newTold(true)
	w.f.Notify(WithOrigin(context.Background(), w), Event{Ino: 7}, Event{Entry: true, Ino: 3, Name: "a"})
	if len(w.lines) > 0 {
		t.Errorf("the origin is told %q", w.lines)
	}
}

func TestCurrent(t *testing.T) {
	alone, shared := New(true, nil, nil), New(false, nil, nil)
	s := alone.MoveStamp()
	old := s.taken.Add(-2 * StaleBound)
	if !alone.Current(old) || shared.Current(old) || !shared.Current(s.taken) {
		t.Error("what is old is current only where all changes are told")
	}
	s.taken = old
	if !alone.Unmoved(s) || shared.Unmoved(s) {
		t.Error("an old stamp holds only where all changes are told")
	}
}
