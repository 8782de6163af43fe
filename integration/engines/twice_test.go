package engines

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/integration/testenv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// asIs passes messages on as the bytes that they are.
type asIs struct{}

func (asIs) Name() string { return "proto" }

func (asIs) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (asIs) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = asIs{}

// repeater stands before a member, as a proxy that knows requests and sends them again.
type repeater struct {
	member *grpc.ClientConn
	// ends has it end each second transaction that it sent, without its answer, in place of
	// sending it twice.
	ends      bool
	repeating atomic.Bool
	sent      atomic.Int64 // transactions while it repeats
}

func startRepeater(t *testing.T, member string, ends bool) (*repeater, string) {
	t.Helper()
	conn, err := grpc.NewClient(member, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asIs{})))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &repeater{member: conn, ends: ends}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(asIs{}), grpc.UnknownServiceHandler(p.pass))
	go srv.Serve(l)
	t.Cleanup(func() {
		srv.Stop()
		conn.Close()
	})
	return p, l.Addr().String()
}

func (p *repeater) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	if method == "/etcdserverpb.KV/Txn" && p.repeating.Load() {
		return p.repeat(client, method)
	}
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	member, err := p.member.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var request []byte
			if err := client.RecvMsg(&request); err != nil {
				_ = member.CloseSend()
				return
			}
			if member.SendMsg(&request) != nil {
				return // what ended it, RecvMsg returns
			}
		}
	}()
	for {
		var answer []byte
		if err := member.RecvMsg(&answer); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := client.SendMsg(&answer); err != nil {
			return err
		}
	}
}

func (p *repeater) repeat(client grpc.ServerStream, method string) error {
	var request, answer []byte
	if err := client.RecvMsg(&request); err != nil {
		return err
	}
	if err := p.member.Invoke(client.Context(), method, &request, &answer); err != nil {
		return err
	}
	switch n := p.sent.Add(1); {
	case p.ends && n%2 == 0:
		return status.Error(codes.Canceled, "the stream was reset")
	case !p.ends:
		if err := p.member.Invoke(client.Context(), method, &request, &answer); err != nil {
			return err
		}
	}
	return client.SendMsg(&answer)
}

// Each increment counts once, also where a proxy sends commits twice, or ends what was sent so
// that the client would send it again.
func TestEtcdSentTwice(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	for name, ends := range map[string]bool{"sent twice": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			p, addr := startRepeater(t, e.Endpoints()[0], ends)
			prefix := newPrefix()
			clients := []cluster.KV{openEtcd(t, prefix, addr), openEtcd(t, prefix, addr)}
			p.repeating.Store(true)
			y := load(t, clients, 8, func() {
				time.Sleep(3 * time.Second)
				p.repeating.Store(false)
			})
			t.Logf("%d transactions were sent", p.sent.Load())
			if n := y.unknown.Load(); n > 0 {
				t.Errorf("%d outcomes stayed unknown", n)
			}
		})
	}
}
