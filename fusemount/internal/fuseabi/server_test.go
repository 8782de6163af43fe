package fuseabi

import (
	"testing"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// slow answers after a while, with times.
type slow struct {
	fuse.RawFileSystem
	takes time.Duration
}

func (s *slow) entry(out *fuse.EntryOut) fuse.Status {
	time.Sleep(s.takes)
	out.NodeId = 7
	out.SetEntryTimeout(time.Minute)
	out.SetAttrTimeout(time.Minute)
	return fuse.OK
}

func (s *slow) attr(out *fuse.AttrOut) fuse.Status {
	time.Sleep(s.takes)
	out.SetTimeout(time.Minute)
	return fuse.OK
}

func (s *slow) Lookup(_ <-chan struct{}, _ *fuse.InHeader, _ string, out *fuse.EntryOut) fuse.Status {
	return s.entry(out)
}

func (s *slow) Mkdir(_ <-chan struct{}, _ *fuse.MkdirIn, _ string, out *fuse.EntryOut) fuse.Status {
	return s.entry(out)
}

func (s *slow) Create(_ <-chan struct{}, _ *fuse.CreateIn, _ string, out *fuse.CreateOut) fuse.Status {
	return s.entry(&out.EntryOut)
}

func (s *slow) GetAttr(_ <-chan struct{}, _ *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return s.attr(out)
}

func (s *slow) SetAttr(_ <-chan struct{}, _ *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return s.attr(out)
}

func (s *slow) Statx(_ <-chan struct{}, _ *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	time.Sleep(s.takes)
	out.SetTimeout(time.Minute)
	return fuse.OK
}

func (s *slow) ReadDirPlus(_ <-chan struct{}, _ *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	for _, name := range []string{"a", "of eight", "longer than that"} {
		s.entry(out.AddDirLookupEntry(fuse.DirEntry{Name: name, Ino: 7, Mode: fuse.S_IFREG}))
	}
	return fuse.OK
}

// ask has s answer a request of a kind, in one buffer or, as over io_uring, in two.
func ask[In any](s *Server, opcode uint32, in In, name string, apart bool) []byte {
	b := append(unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in)), name...)
	if name != "" {
		b = append(b, 0)
	}
	h := (*fuse.InHeader)(unsafe.Pointer(&b[0]))
	h.Length, h.Opcode, h.Unique, h.NodeId = uint32(len(b)), opcode, 5, 2
	out := make([]byte, OutHeaderSize+8192)
	parts := [][]byte{out}
	if apart {
		parts = [][]byte{out[:OutHeaderSize], out[OutHeaderSize:]}
	}
	n, _ := s.HandleRequest([][]byte{b}, parts)
	return out[OutHeaderSize:n]
}

// What took long to answer, the kernel does not keep.
func TestLateAnswers(t *testing.T) {
	for name, x := range map[string]struct {
		takes, inTime time.Duration
		kept          bool
	}{
		"in time":         {0, time.Minute, true},
		"late":            {2 * time.Millisecond, time.Millisecond, false},
		"whenever it was": {2 * time.Millisecond, 0, true},
	} {
		for _, apart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := NewServer(&slow{fuse.NewDefaultRawFileSystem(), x.takes}, &fuse.MountOptions{}, x.inTime)
				kept := func(what string, times ...time.Duration) {
					t.Helper()
					for _, d := range times {
						if (d == time.Minute) != x.kept || d != 0 && d != time.Minute {
							t.Errorf("%s: %v", what, times)
						}
					}
				}
				for what, b := range map[string][]byte{
					"lookup": ask(s, OpLookup, fuse.InHeader{}, "name", apart),
					"mkdir":  ask(s, OpMkdir, fuse.MkdirIn{}, "name", apart),
					"create": ask(s, OpCreate, fuse.CreateIn{}, "name", apart),
				} {
					e := (*fuse.EntryOut)(unsafe.Pointer(&b[0]))
					if kept(what, e.EntryTimeout(), e.AttrTimeout()); e.NodeId != 7 {
						t.Errorf("%s: node %d", what, e.NodeId)
					}
				}
				for what, b := range map[string][]byte{
					"getattr": ask(s, OpGetAttr, fuse.GetAttrIn{}, "", apart),
					"setattr": ask(s, OpSetAttr, fuse.SetAttrIn{}, "", apart),
				} {
					kept(what, (*fuse.AttrOut)(unsafe.Pointer(&b[0])).Timeout())
				}
				b := ask(s, OpStatx, fuse.StatxIn{}, "", apart)
				kept("statx", (*fuse.StatxOut)(unsafe.Pointer(&b[0])).Timeout())
				b = ask(s, OpReadDirPlus, fuse.ReadIn{Size: 4096}, "", apart)
				entries := 0
				for ; len(b) > 0; entries++ {
					e := (*fuse.EntryOut)(unsafe.Pointer(&b[0]))
					kept("readdirplus", e.EntryTimeout(), e.AttrTimeout())
					name := int((*dirent)(unsafe.Pointer(&b[entrySize])).NameLen)
					b = b[entrySize+direntSize+(name+7)/8*8:]
				}
				if entries != 3 {
					t.Errorf("%d entries", entries)
				}
			})
		}
	}
}
