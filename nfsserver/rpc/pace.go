package rpc

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"ogw/vfs/clients/pipe"
)

// minRate, in bytes per second, is what must move while one side waits for the
// other's bytes, or the connection ends: a rest of a record, replies that the
// client asked for. It is a tenth of what the slowest lines carry on which
// anybody mounts a file system, and ends whoever holds memory by trickling.
const minRate = 16 << 10

// recordDeadline is when a record must be complete as far as it has come:
// stall after its begin, and later the more of it arrived.
func recordDeadline(begun time.Time, stall time.Duration, got int) time.Time {
	return begun.Add(stall + time.Duration(got)*time.Second/minRate)
}

// writePaced writes v, as long as the other side takes minRate over every
// stall, and returns how much it took.
func writePaced(nc net.Conn, v *net.Buffers, stall time.Duration) (int64, error) {
	return paced(nc, stall, func() (int64, error) { return writeAll(nc, v) })
}

// sendPaced is writePaced for what is in a pipe, and goes to the socket of nc.
func sendPaced(nc net.Conn, socket syscall.RawConn, p *pipe.Pipe, stall time.Duration) (int64, error) {
	return paced(nc, stall, func() (int64, error) {
		n, err := p.Send(socket)
		return int64(n), err
	})
}

func paced(nc net.Conn, stall time.Duration, write func() (int64, error)) (total int64, err error) {
	least := int64(stall.Seconds() * minRate)
	for {
		nc.SetWriteDeadline(time.Now().Add(stall))
		n, err := write()
		total += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || n < least {
			return total, err
		}
	}
}

// writeAll is WriteTo, cheaper where there is one buffer.
func writeAll(nc net.Conn, v *net.Buffers) (int64, error) {
	if len(*v) != 1 {
		return v.WriteTo(nc)
	}
	n, err := nc.Write((*v)[0])
	(*v)[0] = (*v)[0][n:]
	return int64(n), err
}
