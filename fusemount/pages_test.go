package fusemount

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster/mem"
	"ogw/vfs"
)

// The pages that the kernel has are believed to show a version only when it has dropped the
// older ones: not for an open that is not answered yet, and never from a truncation, or
// from writes through them, on.
func TestPageVersions(t *testing.T) {
	const ino = 7
	attr := func(others uint64) *vfs.Attr { return &vfs.Attr{Ino: ino, Others: others, Size: 4} }
	for _, x := range []struct {
		what  string
		doubt func(p *pageVersions)
	}{
		{"open of another version", func(p *pageVersions) {
			var out fuse.OpenOut
			if p.opened(attr(2), &out); out.OpenFlags&fuse.FOPEN_KEEP_CACHE != 0 {
				t.Error("pages of another version are kept over an open")
			}
		}},
		{"restored, or written through pages", func(p *pageVersions) { p.doubt(ino) }},
		{"as the first", func(p *pageVersions) { p.forget(ino); p.doubt(ino) }},
	} {
		var p pageVersions
		p.init(true)
		p.opened(attr(1), new(fuse.OpenOut))
		if drop, _, _ := p.compare(attr(1)); drop {
			t.Errorf("%s: pages are dropped before it", x.what)
		}
		x.doubt(&p)
		if drop, _, _ := p.compare(attr(2)); !drop {
			t.Errorf("%s: older pages stay", x.what)
		}
		p.dropped(attr(2))
		if drop, _, _ := p.compare(attr(2)); drop {
			t.Errorf("%s: pages are dropped twice", x.what)
		}
		var out fuse.OpenOut
		if p.opened(attr(2), &out); out.OpenFlags&fuse.FOPEN_KEEP_CACHE == 0 {
			t.Errorf("%s: pages are not kept", x.what)
		}
	}
	// Where nothing renews them, the open notes it.
	var p pageVersions
	p.init(false)
	p.distrust()
	p.doubt(ino)
	for i := range 2 {
		var out fuse.OpenOut
		if p.opened(attr(0), &out); out.OpenFlags&fuse.FOPEN_KEEP_CACHE != 0 != (i > 0) {
			t.Errorf("open %d keeps pages: %x", i, out.OpenFlags)
		}
	}
}

// What is opened with O_TRUNC first is known, too.
func TestPagesTruncated(t *testing.T) {
	c := mem.New(mem.Options{})
	t.Cleanup(func() { must(t, c.Close()) })
	fs := openBeside(t, c)
	_, file, _, err := fs.Create(bg, vfs.Root, vfs.RootIno, "f", vfs.CreateOptions{Mode: 0o644, Flags: vfs.OpenWrite})
	must(t, err)
	f := &rawFS{}
	f.pages.init(true)
	must(t, f.keepPages(file, unix.O_TRUNC, new(fuse.OpenOut)))
	a, err := file.Attr(bg)
	must(t, err)
	if drop, told, _ := f.pages.compare(&a); !drop || told == nil {
		t.Errorf("pages are dropped %v, the size is told %v", drop, told != nil)
	}
	must(t, file.Close(bg))
}

// A write does not wait without end for pages that somebody has locked: those are dropped
// by the next open, or answer with attributes.
func TestWriteLate(t *testing.T) {
	f := &rawFS{beside: true, opt: Options{Logger: slog.New(slog.DiscardHandler)}}
	f.conn = &connection{raw: f, set: new(Mounts), ended: true}
	f.inv.init(f)
	f.pages.init(true)
	a := vfs.Attr{Ino: 7, Mode: vfs.ModeRegular}
	for _, late := range []bool{false, true} {
		f.pages.opened(&a, new(fuse.OpenOut))
		f.pages.dropped(&a)
		unlocked := make(chan struct{})
		if !late {
			close(unlocked)
		}
		f.dropWritten(a.Ino, func() { <-unlocked })
		if late {
			close(unlocked)
		}
		if drop, _, _ := f.pages.compare(&a); drop != late {
			t.Errorf("late %v: pages are dropped %v", late, drop)
		}
	}
}

// A GETATTR that waits for the kernel says so first, wherever it came from.
func TestRenewPagesWaits(t *testing.T) {
	f := &rawFS{beside: true, opt: Options{Logger: testLogger(t)}}
	f.conn = &connection{raw: f, set: new(Mounts), ended: true}
	f.inv.init(f)
	f.sizes.init(f)
	f.pages.init(true)
	var waits []uint64
	f.pauses = func(unique uint64) { waits = append(waits, unique) }
	a := vfs.Attr{Ino: 7, Mode: vfs.ModeRegular}
	f.pages.opened(&a, new(fuse.OpenOut))
	f.renewPages(&fuse.InHeader{Unique: 2}, &a, true)
	a.Others++
	f.renewPages(&fuse.InHeader{Unique: 4}, &a, true)
	f.renewPages(&fuse.InHeader{Unique: 6}, &a, true)
	if len(waits) != 1 || waits[0] != 4 {
		t.Errorf("requests %d wait, want 4", waits)
	}
}

// Writes past the page cache that all wait for the kernel to drop pages leave threads for the
// READs that hold those.
func TestWritesLeaveThreads(t *testing.T) {
	k := begin(t, "text")
	fh := k.open(2, unix.O_RDWR)
	k.files.get(fh).direct = true
	stuck := stuckNotifier{asked: make(chan struct{}, 1), end: make(chan struct{})}
	k.inv.server.Store(notifierBox{stuck})
	answered := make(chan fuse.Status, maxLoopThreads)
	for i := range uint64(maxLoopThreads) {
		go func() {
			_, st := k.Write(nil, &fuse.WriteIn{InHeader: header(4+2*i, k.file), Fh: fh, Size: 1}, []byte("x"))
			answered <- st
		}()
	}
	late := time.After(10 * tellWait)
	for i := range maxLoopThreads {
		if i == maxLoopThreads-maxUntimed {
			close(stuck.end) // what a READ does that has a thread
		}
		select {
		case st := <-answered:
			if !st.Ok() {
				t.Errorf("a write: %v", st)
			}
		case <-late:
			t.Fatalf("%d of %d writes were answered", i, maxLoopThreads)
		}
	}
}
