package adversary

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The attackers of a flood are a process of their own: what they compute and
// collect would otherwise be measured as their victim's, who is the process of
// the test.

// floodVariable has the scene of a flood, as JSON, in the environment of such a
// process.
const floodVariable = "OGW_TEST_FLOOD"

// thereTime is what a flood may take until all of it is there.
const thereTime = time.Minute

// there is the line that a process of attackers prints then.
const there = "there"

// scene is what the attackers know.
type scene struct {
	Flood     string // of floods
	S3, NFS   string // addresses of the server
	Text      string // what each HTTP connection begins with
	Conns     int    // how many of these
	Addresses []string
	File      []byte // a handle
}

// floods begins each kind of flood. What it returns stays there.
var floods = map[string]func(scene) (stays []net.Conn, err error){
	"still":       floodStill,
	"trickling":   floodTrickling,
	"streams":     floodOfStreams,
	"reads":       floodOfReads,
	"records":     floodOfHalfRecords,
	"connections": floodOfConnections,
}

// floodFrom is the main function of a process of attackers. It ends with its
// standard input, and its connections with it.
func floodFrom(text string) error {
	var sc scene
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		return err
	}
	stays, err := floods[sc.Flood](sc)
	if err != nil {
		return err
	}
	fmt.Println(there)
	_, err = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(stays) // what is collected is closed
	return err
}

// begin has a flood on when it returns, until end.
func (sc scene) begin(t *testing.T) (end func()) {
	t.Helper()
	text, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floodVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(thereTime, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	late.Stop()
	end = func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("attackers: %v", err)
		}
	}
	if err != nil || strings.TrimSpace(line) != there {
		end()
		t.Fatalf("instead of a flood: %q %v", line, err)
	}
	return end
}

// connect opens n connections to an HTTP gateway, from the addresses in turn,
// and sends on each. They are fewer if the server takes no more.
func connect(to string, n int, text string, from ...string) (conns []net.Conn) {
	for i := range n {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from[i%len(from)])}, Timeout: giveUp, Control: smallWindow}
		c, err := d.Dial("tcp", to)
		if err != nil {
			break
		}
		conns = append(conns, c)
		_, _ = io.WriteString(c, text) // it may have been refused
	}
	return conns
}

// smallWindow keeps the attacker's own receive buffers, which lie elsewhere in
// earnest, from taking all that this machine has for TCP.
func smallWindow(_, _ string, c syscall.RawConn) error {
	const receiveBytes = 64 << 10
	var set error
	err := c.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBytes)
	})
	if err == nil {
		err = set
	}
	return err
}

// closeAll ends connections.
func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}
