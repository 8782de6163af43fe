package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/internal/occ"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	// DefaultPrefix begins the keys of a store that has the cluster to itself.
	DefaultPrefix = "ogw/"
	// MaxPrefixBytes leaves the longest key within what etcd takes in one
	// comparison of many.
	MaxPrefixBytes = 128

	// openTimeout is for a connection and one read. A member that starts
	// needs an election, a second or two.
	openTimeout = 10 * time.Second
	// keepAlive is the silence of a member after which it is asked, for
	// keepAliveTimeout, and then given up. Less than this gRPC does not take.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 2 * time.Second
)

// Options of a client of one store.
type Options struct {
	// Endpoints are addresses of members, as HOST:PORT or URL; one that
	// answers is enough.
	Endpoints []string
	// Prefix begins all keys of the store; DefaultPrefix if empty.
	Prefix string
	// TLS returns how a member is spoken to over a connection that begins now; nil is in clear.
	TLS func() *tls.Config
	// Username and Password of etcd's own users; empty without.
	Username, Password string
	// Peers is told what is about to be changed; nil without.
	Peers *coherence.Client
}

func (o *Options) check() error {
	if len(o.Endpoints) == 0 {
		return fmt.Errorf("%w: no endpoints of etcd", cluster.ErrInvalid)
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if len(o.Prefix) > MaxPrefixBytes {
		return fmt.Errorf("%w: prefix of %d bytes in etcd, at most %d are allowed", cluster.ErrInvalid, len(o.Prefix), MaxPrefixBytes)
	}
	if o.Prefix[0] == 0xff {
		return fmt.Errorf("%w: a prefix in etcd cannot begin with 0xFF", cluster.ErrInvalid)
	}
	return nil
}

// Open connects to a store, which begins to exist with its first pair. It
// returns ErrUnavailable if no member answers, or refuses the caller.
func Open(ctx context.Context, o Options) (*KV, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	client, err := connect(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", strings.Join(o.Endpoints, ", "), err)
	}
	kv := &KV{client: client, keys: keyspace(o.Prefix), gate: occ.NewGate(), memory: occ.NewMemory(o.Peers.Trust()),
		turns: occ.NewTurns(), reads: newReads(client), peers: o.Peers}
	kv.slots = newSlots(client, kv.keys)
	kv.history = newCompactor(client, kv.keys)
	return kv, nil
}

// connect returns a client whose first linearizable read was answered.
func connect(ctx context.Context, o Options) (*clientv3.Client, error) {
	members := newMembers(o.Endpoints)
	dial := []grpc.DialOption{grpc.WithChainUnaryInterceptor(members.interceptor())}
	var secure *tls.Config
	if o.TLS != nil {
		secure = o.TLS()
		dial = append(dial, grpc.WithTransportCredentials(renewed(o.TLS))) // in place of those of secure
	}
	client, err := clientv3.New(clientv3.Config{
		// The client outlives ctx, which bounds what is asked here.
		Context:              context.WithoutCancel(ctx),
		Endpoints:            members.first(),
		DialTimeout:          openTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		TLS:                  secure,
		Username:             o.Username,
		Password:             o.Password,
		DialOptions:          dial,
		Logger:               zap.NewNop(), // what matters is returned
	})
	if err != nil {
		return nil, mapError(err)
	}
	members.use(client)
	err = resend(ctx, openTimeout, func(ctx context.Context) error {
		_, err := client.Get(ctx, o.Prefix, clientv3.WithCountOnly())
		return err
	})
	if err != nil {
		_ = client.Close()
		return nil, mapError(err)
	}
	return client, nil
}
