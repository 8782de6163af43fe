package server

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"ogw/cluster/coherence"
	"ogw/cmd/ogw/config"
)

// openPeers returns what tells the other gateways of a store what this one changes; nil
// where there are none, or it is not to.
func openPeers(c *config.Cluster, by *opener) (*coherence.Client, error) {
	if c.Gateways != config.ManyGateways || c.PeerListen == config.NoPeers {
		return nil, nil
	}
	near := addressTowards(c)
	o := coherence.Options{Listen: c.PeerListen, Address: c.PeerAddress, Host: near, Log: by.log}
	if o.Listen == "" || !by.serves { // a command may run beside the gateway of its machine
		o.Listen, o.Address = net.JoinHostPort(near, "0"), ""
	}
	p, err := coherence.New(o)
	if err != nil {
		return nil, fmt.Errorf("cluster.peer_listen: %w", err)
	}
	address, _ := p.Me()
	by.log.Info("other gateways reach this one", "address", address)
	return p, nil
}

// loopback is the address of who reaches the metadata without a network.
const loopback = "127.0.0.1"

// addressTowards returns the address of this machine from which it reaches the metadata. Nothing is sent.
func addressTowards(c *config.Cluster) string {
	m, err := c.ParseMetadata()
	if err != nil {
		return loopback
	}
	hosts := m.Etcd
	if u, err := url.Parse(m.PostgreSQL); err == nil && u.Host != "" {
		hosts = strings.Split(u.Host, ",")
	}
	near := net.ParseIP(loopback)
	for _, host := range hosts { // one may be on this machine, and others not
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "5432") // any port does
		}
		conn, err := net.Dial("udp", host)
		if err != nil {
			continue
		}
		if a, ok := conn.LocalAddr().(*net.UDPAddr); ok && near.IsLoopback() {
			near = a.IP
		}
		conn.Close()
	}
	return near.String()
}
