package fuseabi

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/cluster/bootclock"
)

// Server is a ProtocolServer of which the kernel keeps no attributes that took long to answer (GETATTR and
// STATX): how long it may counts from the moment at which they were read.
type Server struct {
	*fuse.ProtocolServer
	inTime time.Duration
}

// NewServer returns one for answers in a time; 0 is any.
func NewServer(api fuse.RawFileSystem, opt *fuse.MountOptions, inTime time.Duration) *Server {
	return &Server{fuse.NewProtocolServer(api, opt), inTime}
}

// HandleRequest is that of a ProtocolServer, where all that comes before the payload of an
// answer, if anything, is its header.
func (s *Server) HandleRequest(in, out [][]byte) (n int, st fuse.Status) {
	if s.inTime == 0 || len(out) == 0 {
		return s.ProtocolServer.HandleRequest(in, out)
	}
	opcode := (*fuse.InHeader)(unsafe.Pointer(&in[0][0])).Opcode // the answer may go over it
	begin := bootclock.Now()
	n, st = s.ProtocolServer.HandleRequest(in, out)
	if n > OutHeaderSize && bootclock.Now()-begin > s.inTime {
		payload := out[len(out)-1]
		if len(out) == 1 {
			payload = payload[OutHeaderSize:]
		}
		expire(opcode, payload[:n-OutHeaderSize])
	}
	return n, st
}

// Agree has p know how the kernel began a connection, to which another server of
// go-fuse has answered.
func Agree(p *Server, init *fuse.InitIn) error {
	init.InHeader = fuse.InHeader{Length: uint32(unsafe.Sizeof(*init)), Opcode: OpInit, Unique: init.Unique}
	in := unsafe.Slice((*byte)(unsafe.Pointer(init)), unsafe.Sizeof(*init))
	out := make([]byte, OutHeaderSize+int(unsafe.Sizeof(fuse.InitOut{})))
	if n, st := p.HandleRequest([][]byte{in}, [][]byte{out}); n < OutHeaderSize {
		return fmt.Errorf("INIT: %v", st)
	}
	return nil
}

// Interrupt has p interrupt a request, and reports whether p has it.
func Interrupt(p *Server, unique uint64) bool {
	in := fuse.InterruptIn{Unique: unique}
	in.InHeader = fuse.InHeader{Length: uint32(unsafe.Sizeof(in)), Opcode: OpInterrupt}
	n, _ := p.HandleRequest([][]byte{unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))}, [][]byte{make([]byte, OutHeaderSize)})
	return n == 0 // else it asks the kernel to send the interrupt again
}

// expire has the kernel keep nothing of what an answer to a kind of request says.
func expire(opcode uint32, payload []byte) {
	if (opcode == OpGetAttr || opcode == OpStatx) && len(payload) >= int(unsafe.Sizeof(fuse.AttrOut{})) {
		a := (*fuse.AttrOut)(unsafe.Pointer(&payload[0])) // a StatxOut begins alike
		a.AttrValid, a.AttrValidNsec = 0, 0
	}
}
