package nsm

import (
	"context"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
)

// Program number and version.
const (
	ProgramNumber = 100024
	Version       = 1
)

// Procedures. Those that monitor on behalf of others (MON, UNMON, UNMON_ALL,
// SIMU_CRASH) belong to the machine's own programs and are not served.
const (
	procNull   = 0
	procStat   = 1
	procNotify = 6
	maxProc    = 7
)

const (
	statFail = 1 // of STAT: this monitor watches nobody on others' behalf
	// maxString is SM_MAXSTRLEN.
	maxString = 1024
)

// Program returns what others may call.
func (m *Monitor) Program() rpc.Program {
	procs := make([]rpc.Proc, maxProc)
	procs[procNull] = rpc.Proc{Name: "NULL", Inline: true,
		Handle: func(context.Context, *rpc.Call, *rpc.Reply) error { return nil }}
	procs[procStat] = rpc.Proc{Name: "STAT", Inline: true, Handle: m.stat}
	procs[procNotify] = rpc.Proc{Name: "NOTIFY", Handle: m.notified}
	return rpc.Program{Number: ProgramNumber, Low: Version, High: Version, Procs: procs, Datagrams: true}
}

// Names of the procedures, by number.
func Names() []string {
	return []string{"NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"}
}

func (m *Monitor) stat(_ context.Context, c *rpc.Call, r *rpc.Reply) error {
	c.Args.String(maxString)
	if c.Args.Err() != nil {
		return rpc.ErrGarbageArgs
	}
	r.Uint32(statFail)
	r.Uint32(m.state)
	return nil
}

// notified is SM_NOTIFY.
func (m *Monitor) notified(ctx context.Context, c *rpc.Call, _ *rpc.Reply) error {
	name, state, err := decodeNotify(&c.Args)
	if err != nil {
		return rpc.ErrGarbageArgs
	}
	if m.cfg.Rebooted(ctx, c.Remote.Addr(), name, state) != nil {
		return rpc.ErrDrop
	}
	return nil
}

// decodeNotify decodes a struct stat_chge.
func decodeNotify(r *xdr.Reader) (name string, state uint32, err error) {
	name, state = r.String(maxString), r.Uint32()
	return name, state, r.Err()
}
