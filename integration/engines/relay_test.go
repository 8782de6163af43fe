package engines

import (
	"net"
	"sync"
	"testing"
)

// relay stands between a gateway and a server. It can let nothing through, in either
// direction, without ending the connections, and forget those that there are.
type relay struct {
	listener net.Listener

	mu      sync.Mutex
	server  string
	changed *sync.Cond
	held    [2]bool // requests, answers
	ended   bool
	conns   map[net.Conn]bool
	lost    map[net.Conn]bool // of conns
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, server: server, conns: map[net.Conn]bool{}, lost: map[net.Conn]bool{}}
	r.changed = sync.NewCond(&r.mu)
	go r.accept()
	t.Cleanup(r.close)
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		to := r.server
		r.mu.Unlock()
		server, err := net.Dial("tcp", to)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.conns[client], r.conns[server] = true, true
		r.mu.Unlock()
		go r.copy(server, client, 0)
		go r.copy(client, server, 1)
	}
}

// copy passes on what comes in one direction, and ends both with it, unless they are lost.
func (r *relay) copy(to, from net.Conn, direction int) {
	defer r.end(to, from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && r.pass(from, direction) {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// pass waits while a direction is held, or for ever on a connection that is lost.
func (r *relay) pass(from net.Conn, direction int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for (r.held[direction] || r.lost[from]) && !r.ended {
		r.changed.Wait()
	}
	return !r.ended
}

func (r *relay) end(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.lost[c] && !r.ended {
			continue
		}
		c.Close()
		delete(r.conns, c)
	}
}

// cut holds requests, answers, both or none.
func (r *relay) cut(requests, answers bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = [2]bool{requests, answers}
	r.changed.Broadcast()
}

// lose has nothing come through the connections that there are, without a word to either
// end, as a firewall that forgets them. New ones work.
func (r *relay) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		r.lost[c] = true
	}
}

// move has all connections from now on lead to another server, and ends those that there are.
func (r *relay) move(server string) {
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	r.reset()
}

// reset ends all connections.
func (r *relay) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

func (r *relay) close() {
	r.listener.Close()
	r.mu.Lock()
	r.ended = true
	r.changed.Broadcast()
	r.mu.Unlock()
	r.reset()
}
