package server

import (
	"log/slog"
	"net"
	"testing"

	"ogw/cmd/ogw/config"
)

// A gateway is reached at the address from which it reaches the metadata.
func TestAddressTowards(t *testing.T) {
	outside := loopback // on a machine without a network
	if conn, err := net.Dial("udp", "192.0.2.1:9"); err == nil {
		outside, _, _ = net.SplitHostPort(conn.LocalAddr().String())
		conn.Close()
	}
	for metadata, want := range map[string]string{
		"etcd://127.0.0.1:2379":                                 loopback,
		"etcd://127.0.0.1:2379,192.0.2.1:2379":                  outside,
		"postgres://u@192.0.2.1/d":                              outside,
		"postgres://u@192.0.2.1:5432,192.0.2.2:5433/d":          outside,
		"postgres://u@127.0.0.1:5432/d?sslmode=disable":         loopback,
		"postgres://u@localhost,192.0.2.2/d?target=read-write":  outside,
		"postgres://u@/d?host=/var/run/postgresql&sslmode=none": loopback,
	} {
		if got := addressTowards(&config.Cluster{Metadata: metadata}); got != want {
			t.Errorf("%s: %s, want %s", metadata, got, want)
		}
	}
}

func TestOpenPeers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	many := config.Cluster{Gateways: config.ManyGateways, Metadata: "etcd://127.0.0.1:2379", PeerListen: taken}
	log := slog.New(slog.DiscardHandler)
	if _, err := openPeers(&many, &opener{log: log, serves: true}); err == nil {
		t.Error("two listen at one address")
	}
	p, err := openPeers(&many, &opener{log: log}) // a command beside the gateway that listens there
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if at, key := p.Me(); at == taken || len(key) == 0 {
		t.Errorf("it is reached at %s", at)
	}
	for _, c := range []config.Cluster{
		{Gateways: config.OneGateway, Metadata: many.Metadata},
		{Gateways: config.ManyGateways, Metadata: many.Metadata, PeerListen: config.NoPeers},
	} {
		if p, err := openPeers(&c, &opener{log: log, serves: true}); p != nil || err != nil {
			t.Errorf("%+v: %v, %v", c, p, err)
		}
	}
}
