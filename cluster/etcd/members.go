package etcd

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// members has all requests of a client go to one member, and from one that it does not
// answer on to the next one. In turns, one of three would go to a member that stands still
// until the client itself gives it up.
type members struct {
	endpoints []string

	mu     sync.Mutex
	client *clientv3.Client // nil at first
	at     int              // in endpoints
}

// newMembers begins anywhere, so that the clients of a store do not all ask the same one.
func newMembers(endpoints []string) *members {
	return &members{endpoints: endpoints, at: rand.N(len(endpoints))}
}

// first returns where a client begins.
func (m *members) first() []string { return m.endpoints[m.at : m.at+1] }

// use makes client the one whose requests the interceptor sees.
func (m *members) use(client *clientv3.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = client
}

// interceptor sees each try of each request. The client itself sends anything again that
// somebody else ended than its caller, as a proxy may. Of a commit the first copy could then
// happen after the second one was refused: it is sent once, and fenced.
func (m *members) interceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		m.mu.Lock()
		at := m.at
		m.mu.Unlock()
		begin := time.Now()
		err := invoke(ctx, method, req, reply, cc, opts...)
		code := status.Code(err)
		if code == codes.Unavailable || code == codes.DeadlineExceeded && time.Since(begin) >= tryTimeout {
			m.leave(at)
		}
		if _, commit := req.(*pb.TxnRequest); commit && (code == codes.Canceled || code == codes.DeadlineExceeded) && ctx.Err() == nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
}

// leave has another member than at asked, if that is the one still.
func (m *members) leave(at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at != m.at || m.client == nil || len(m.endpoints) == 1 {
		return
	}
	m.at = (m.at + 1) % len(m.endpoints)
	m.client.SetEndpoints(m.first()...)
}
