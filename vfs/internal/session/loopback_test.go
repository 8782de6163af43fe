package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// A gateway that others cannot reach, or that reaches others in vain, says which setting is wrong.
func TestLoopback(t *testing.T) {
	const net1, net2, loop1, loop2 = "10.0.0.1:7480", "10.0.0.2:7480", "127.0.0.1:7480", "[::1]:7480"
	for name, test := range map[string]struct {
		other, mine  record.Gateway
		here, others bool // warned of
	}{
		"reachable":         {other: gatewayAt("a", net1), mine: gatewayAt("b", net2)},
		"one machine":       {other: gatewayAt("a", loop1), mine: gatewayAt("a", loop2)},
		"this one":          {other: gatewayAt("a", net1), mine: gatewayAt("b", loop1), here: true},
		"the other one":     {other: gatewayAt("a", loop1), mine: gatewayAt("b", net2), others: true},
		"both":              {other: gatewayAt("a", loop1), mine: gatewayAt("b", loop1), here: true, others: true},
		"by name":           {other: gatewayAt("a", net1), mine: gatewayAt("b", "localhost:7480"), here: true},
		"one tells nothing": {other: gatewayAt("a", ""), mine: gatewayAt("b", loop1)},
		"this tells none":   {other: gatewayAt("a", loop1), mine: gatewayAt("b", "")},
	} {
		var log bytes.Buffer
		l := &Lease{me: test.mine, log: slog.New(slog.NewTextHandler(&log, nil))}
		l.warnOfLoopback() // before it looked
		l.peers.seen.Store(&[]standing{{sighting: sighting{Gateway: test.mine}}, {sighting: sighting{Gateway: test.other}}, {sighting: sighting{Gateway: test.other}}})
		l.warnOfLoopback()
		here, others := strings.Count(log.String(), "this one"), strings.Count(log.String(), "set cluster.peer_address there")
		if wantHere, wantOthers := times(test.here, 1), times(test.others, 2); here != wantHere || others != wantOthers {
			t.Errorf("%s: warned of this one %d times, of others %d:\n%s", name, here, others, &log)
		}
	}
}

func gatewayAt(host, address string) record.Gateway {
	return record.Gateway{Host: host, Address: address}
}

func times(is bool, n int) int {
	if is {
		return n
	}
	return 0
}

// It does so when it joins.
func TestJoinAtLoopback(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	told(t, c.KV, "a") // at host:1
	var log bytes.Buffer
	p := &listener{at: "127.0.0.1:1"}
	l, err := Join(bg, c.KV, p, besideMember("b"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "set cluster.peer_address") {
		t.Errorf("log:\n%s", &log)
	}
}
