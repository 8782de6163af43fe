//go:build ceph

package librados

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ogw/cluster"

	"github.com/ceph/go-ceph/rados"
)

const (
	// DefaultUser is Ceph's own default.
	DefaultUser = "admin"
	// DefaultTimeout is for one request. An OSD whose machine lost its power is given
	// up by the others after 20 seconds or more (osd_heartbeat_grace), and requests are sent to
	// the next one then. Clients of a gateway give up after a minute, as a rule.
	DefaultTimeout = 45 * time.Second

	// impatience is how long others wait after a request that was given up after its
	// timeout, until one is answered: a call that failed has to clean up, and its client waits.
	impatience = 5 * time.Second

	// connectTimeout is for the first answer of a monitor.
	connectTimeout = 10 * time.Second
	// monTimeout is for what a monitor is asked for later; only people wait for it.
	monTimeout = 10 * time.Second
	// maxUnderWay bounds the requests of one process that are under way, each with a thread:
	// more than the OSDs of a rack do at a time. The rest wait.
	maxUnderWay = 256
)

// Options of a client of one store.
type Options struct {
	// Conf is the path of ceph.conf; where Ceph looks for it if empty.
	Conf string
	// User without "client."; DefaultUser if empty.
	User string
	// Keyring is the file with the user's key; where Ceph looks for it if empty.
	Keyring string
	// Pool exists already, and is replicated.
	Pool string
	// Namespace in the pool, which is the store's alone.
	Namespace string
	// Timeout of a request; DefaultTimeout if 0.
	Timeout time.Duration
}

// Open connects to a cluster. It returns ErrInvalid for what cannot be read of the
// configuration, and ErrUnavailable if no monitor answers, the user is refused, or
// there is no such pool.
func Open(ctx context.Context, o Options) (*Pool, error) {
	if o.User == "" {
		o.User = DefaultUser
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Pool == "" || o.Namespace == "" {
		return nil, fmt.Errorf("%w: neither pool nor namespace may be empty", cluster.ErrInvalid)
	}
	conn, err := o.configured()
	if err != nil {
		return nil, err
	}
	p := &Pool{conn: conn, options: o, slots: make(chan struct{}, maxUnderWay)}
	// Connecting takes connectTimeout at the most; who gives up before leaves it behind.
	done := make(chan error, 1)
	go func() { done <- p.connect() }()
	select {
	case err := <-done:
		if err != nil {
			conn.Shutdown()
			return nil, err
		}
		return p, nil
	case <-ctx.Done():
		go func() {
			if <-done == nil {
				p.io.Destroy()
			}
			conn.Shutdown()
		}()
		return nil, ctx.Err()
	}
}

// configured returns a client that knows where to connect to.
func (o *Options) configured() (*rados.Conn, error) {
	conn, err := rados.NewConnWithUser(o.User)
	if err != nil {
		return nil, fmt.Errorf("%w: librados: %w", cluster.ErrInvalid, err)
	}
	if o.Conf != "" {
		err = conn.ReadConfigFile(o.Conf)
	} else {
		err = conn.ReadDefaultConfigFile()
	}
	if err != nil {
		conn.Shutdown()
		return nil, fmt.Errorf("%w: ceph.conf (%q): %w", cluster.ErrInvalid, o.Conf, err)
	}
	for _, option := range [][2]string{
		{"client_mount_timeout", seconds(connectTimeout)},
		{"rados_mon_op_timeout", seconds(monTimeout)},
		{"rados_osd_op_timeout", seconds(o.Timeout)},
		{"keyring", o.Keyring},
	} {
		if option[1] == "" {
			continue
		}
		if err := conn.SetConfigOption(option[0], option[1]); err != nil {
			conn.Shutdown()
			return nil, fmt.Errorf("%w: %s = %s: %w", cluster.ErrInvalid, option[0], option[1], err)
		}
	}
	return conn, nil
}

// seconds is a time as Ceph takes it: whole ones, of which 0 would be no limit.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(d/time.Second)), 10)
}

// connect does so, and opens the pool.
func (p *Pool) connect() error {
	if err := p.conn.Connect(); err != nil {
		return fmt.Errorf("%w: the Ceph cluster does not take client.%s: %w", cluster.ErrUnavailable, p.options.User, err)
	}
	io, err := p.conn.OpenIOContext(p.options.Pool)
	if errors.Is(err, rados.ErrNotFound) {
		return fmt.Errorf("%w: there is no pool %s", cluster.ErrUnavailable, p.options.Pool)
	}
	if err != nil {
		return fmt.Errorf("%w: pool %s: %w", cluster.ErrUnavailable, p.options.Pool, err)
	}
	io.SetNamespace(p.options.Namespace)
	// A full pool is an error at once, and deletes go on. Else requests would wait for space.
	if err := io.SetPoolFullTry(); err != nil {
		io.Destroy()
		return fmt.Errorf("%w: pool %s: %w", cluster.ErrUnavailable, p.options.Pool, err)
	}
	p.io, p.id = io, io.GetPoolID()
	return nil
}
