package audit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// queueLines wait for the server; what comes on top is lost, and counted.
	queueLines = 4096
	// sendTimeout bounds a connection attempt and the writing of a line.
	sendTimeout = 5 * time.Second
	// dialEvery is the pause after a failed connection.
	dialEvery = time.Second
	// drainTime is what is given to waiting lines when the log ends.
	drainTime = 2 * time.Second
	// localSyslog is where the machine's own server listens.
	localSyslog = "/dev/log"

	facilityAuthpriv = 10 // RFC 5424 section 6.2.1, and for who may read it
	severityWarning  = 4
	severityNotice   = 5
	severityInfo     = 6
)

var errQueue = errors.New("audit log: the syslog server does not keep up")

// syslog is a sink that sends messages in the format of RFC 5424. A goroutine
// of its own waits for the server.
type syslog struct {
	network, address string
	head             string // what stands between timestamp and message
	lines            chan message
	lost             func(n uint64, err error)
	done             chan struct{}
	wait             sync.WaitGroup
	conn             net.Conn // of the goroutine; nil: not connected
}

type message struct {
	class Class
	at    time.Time
	line  []byte
}

// ParseSyslog reads the address of a syslog server: "local" (the socket
// /dev/log), unix:///PATH, udp://HOST:PORT or tcp://HOST:PORT.
func ParseSyslog(s string) (network, address string, err error) {
	if s == "local" {
		return "unix", localSyslog, nil
	}
	bad := fmt.Errorf("%q is none of local, unix:///PATH, udp://HOST:PORT, tcp://HOST:PORT", s)
	u, err := url.Parse(s)
	if err != nil {
		return "", "", bad
	}
	switch u.Scheme {
	case "unix":
		if u.Host == "" && u.Path != "" {
			return "unix", u.Path, nil
		}
	case "udp", "tcp":
		if u.Hostname() != "" && u.Port() != "" && u.Path == "" {
			return u.Scheme, u.Host, nil
		}
	}
	return "", "", bad
}

func openSyslog(server string, lost func(uint64, error)) (*syslog, error) {
	network, address, err := ParseSyslog(server)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	s := &syslog{
		network: network, address: address, lost: lost,
		head:  " " + host + " ogw " + strconv.Itoa(os.Getpid()) + " audit - ",
		lines: make(chan message, queueLines), done: make(chan struct{}),
	}
	s.wait.Go(s.run)
	return s, nil
}

// write implements sink.
func (s *syslog) write(c Class, line []byte) error {
	select {
	case s.lines <- message{c, time.Now(), bytes.TrimRight(line, "\n")}:
		return nil
	default:
		return errQueue
	}
}

// reopen implements sink.
func (s *syslog) reopen() error { return nil }

// close implements sink.
func (s *syslog) close() error {
	close(s.done)
	s.wait.Wait()
	if s.conn != nil {
		return s.conn.Close()
	}
	return nil
}

// run sends until close, and then what waits, within drainTime.
func (s *syslog) run() {
	for {
		select {
		case m := <-s.lines:
			s.deliver(m)
		case <-s.done:
			s.drain()
			return
		}
	}
}

func (s *syslog) drain() {
	for end := time.Now().Add(drainTime); time.Now().Before(end); {
		select {
		case m := <-s.lines:
			s.deliver(m)
		default:
			return
		}
	}
	if n := len(s.lines); n > 0 {
		s.lost(uint64(n), errQueue)
	}
}

// deliver sends a line, over a new connection if the old one broke. What
// fails on that, too, is lost: the next line has a better chance.
func (s *syslog) deliver(m message) {
	err := s.send(m)
	if err != nil {
		err = s.send(m)
	}
	if err == nil {
		return
	}
	s.lost(1, err)
	select { // not to ask a dead server without pause
	case <-time.After(dialEvery):
	case <-s.done:
	}
}

func (s *syslog) send(m message) error {
	if s.conn == nil {
		conn, err := s.dial()
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		s.conn = conn
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := s.conn.Write(s.frame(m)); err != nil {
		_ = s.conn.Close()
		s.conn = nil
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func (s *syslog) dial() (net.Conn, error) {
	if s.network != "unix" {
		return net.DialTimeout(s.network, s.address, sendTimeout)
	}
	conn, err := net.DialTimeout("unixgram", s.address, sendTimeout)
	if err != nil {
		return net.DialTimeout("unix", s.address, sendTimeout)
	}
	return conn, nil
}

// frame returns a message (RFC 5424 section 6). On streams it stands behind
// its length (RFC 6587 section 3.4.1), which no content can forge.
func (s *syslog) frame(m message) []byte {
	severity := severityInfo
	switch m.class {
	case Admin:
		severity = severityNotice
	case Access:
		severity = severityWarning
	}
	text := "<" + strconv.Itoa(facilityAuthpriv<<3|severity) + ">1 " +
		m.at.UTC().Format("2006-01-02T15:04:05.000000Z07:00") + s.head + string(m.line)
	if n := s.conn.RemoteAddr().Network(); n == "tcp" || n == "unix" {
		text = strconv.Itoa(len(text)) + " " + text
	}
	return []byte(text)
}
