package fuseabi

import (
	"fmt"
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

func (s *slow) attr(out *fuse.AttrOut) fuse.Status {
	time.Sleep(s.takes)
	out.SetTimeout(time.Minute)
	out.Ino = 7
	return fuse.OK
}

func (s *slow) GetAttr(_ <-chan struct{}, _ *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return s.attr(out)
}

func (s *slow) Statx(_ <-chan struct{}, _ *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	time.Sleep(s.takes)
	out.SetTimeout(time.Minute)
	out.Ino = 7
	return fuse.OK
}

// ask has s answer a request of a kind, in one buffer or, as over io_uring, in two,
// of which the first has the header of the request until that of the answer replaces it.
func ask[In any](s *Server, opcode uint32, in In, ring bool) []byte {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))
	h := (*fuse.InHeader)(unsafe.Pointer(&b[0]))
	h.Length, h.Opcode, h.Unique, h.NodeId = uint32(len(b)), opcode, 5, 2
	if ring {
		payload := make([]byte, 8192)
		n, _ := s.HandleRequest([][]byte{b[:InHeaderSize], b[InHeaderSize:]}, [][]byte{b[:OutHeaderSize], payload})
		return payload[:n-OutHeaderSize]
	}
	out := make([]byte, OutHeaderSize+8192)
	n, _ := s.HandleRequest([][]byte{b}, [][]byte{out})
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
		for _, ring := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ring %v", name, ring), func(t *testing.T) {
				s := NewServer(&slow{fuse.NewDefaultRawFileSystem(), x.takes}, &fuse.MountOptions{}, x.inTime)
				b := ask(s, OpGetAttr, fuse.GetAttrIn{}, ring)
				if a := (*fuse.AttrOut)(unsafe.Pointer(&b[0])); (a.Timeout() == time.Minute) != x.kept || a.Ino != 7 {
					t.Errorf("getattr: %v, inode %d", a.Timeout(), a.Ino)
				}
				b = ask(s, OpStatx, fuse.StatxIn{}, ring)
				if a := (*fuse.StatxOut)(unsafe.Pointer(&b[0])); (a.Timeout() == time.Minute) != x.kept || a.Ino != 7 {
					t.Errorf("statx: %v, inode %d", a.Timeout(), a.Ino)
				}
			})
		}
	}
}
