package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
)

// renewed is TLS by what is in force when a connection begins. It implements
// credentials.TransportCredentials.
type renewed func() *tls.Config

// ClientHandshake implements credentials.TransportCredentials.
func (r renewed) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r()).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (renewed) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (r renewed) Info() credentials.ProtocolInfo { return credentials.NewTLS(r()).Info() }

// Clone implements credentials.TransportCredentials.
func (r renewed) Clone() credentials.TransportCredentials { return r }

// OverrideServerName implements credentials.TransportCredentials, where it is deprecated.
func (renewed) OverrideServerName(string) error {
	return errors.New("the name of a server is that of its address")
}
