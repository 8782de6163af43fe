package nsm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"ogw/nfsserver/portmap"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"
)

const (
	// MaxPeers bounds the clients that are monitored: all are notified within a
	// fraction of a grace period, and each costs some 200 bytes in the store.
	MaxPeers = 4096
	// addressPeers are what every address may have of them: a client chooses its
	// name, and one that has many has one part of the peers all the same.
	addressPeers = 8
)

// ErrTooManyPeers means that MaxPeers clients hold locks, or that an address has
// its part of them.
var ErrTooManyPeers = errors.New("nsm: too many clients hold locks")

// Store keeps small values durably; vfs.FS is one.
type Store interface {
	Settings(ctx context.Context, prefix string) (map[string][]byte, error)
	UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// Config of a Monitor.
type Config struct {
	Store Store
	// Instance distinguishes this process from others over the same store, and is
	// the same after a restart.
	Instance string
	Logger   *slog.Logger
	// Rebooted is called for clients that say they have rebooted. After an error they are
	// not answered, and say it again.
	Rebooted func(ctx context.Context, from netip.Addr, name string, state uint32) error
	// PortmapPort is where clients' portmappers listen; 0 means 111.
	PortmapPort uint16
}

// Monitor knows the peers.
type Monitor struct {
	cfg    Config
	log    *slog.Logger
	prefix string // of names in the store
	names  []string
	state  uint32
	old    []Peer

	mu     sync.Mutex
	peers  map[string]Peer              // by key; those in the store, or about to be
	places *share.Tally[subscriber.Key] // of peers
}

// Open loads the peers that the process before has left and moves the state
// number on.
func Open(ctx context.Context, cfg Config) (*Monitor, error) {
	if cfg.PortmapPort == 0 {
		cfg.PortmapPort = portmap.Port
	}
	m := &Monitor{cfg: cfg, log: cfg.Logger, prefix: "nsm/" + cfg.Instance + "/", peers: make(map[string]Peer),
		places: share.NewTally[subscriber.Key](MaxPeers, addressPeers)}
	if name, err := os.Hostname(); err == nil {
		m.names = []string{name}
		if short, _, ok := strings.Cut(name, "."); ok {
			m.names = append(m.names, short)
		}
	}
	err := cfg.Store.UpdateSetting(ctx, m.prefix+"state", func(old []byte) ([]byte, error) {
		m.state = 1
		if len(old) == 4 {
			m.state = (binary.BigEndian.Uint32(old) + 2) | 1
		}
		return binary.BigEndian.AppendUint32(nil, m.state), nil
	})
	if err != nil {
		return nil, fmt.Errorf("nsm: state number: %w", err)
	}
	stored, err := cfg.Store.Settings(ctx, m.prefix+"peer/")
	if err != nil {
		return nil, fmt.Errorf("nsm: peers: %w", err)
	}
	for name, value := range stored {
		p, err := decodePeer(value)
		if err != nil {
			m.log.Error("nsm: a peer is lost; it will not be told of the restart", "name", name, "err", err)
			continue
		}
		if err := m.rename(ctx, strings.TrimPrefix(name, m.prefix+"peer/"), p); err != nil {
			return nil, err
		}
		if _, twice := m.peers[p.key()]; twice {
			continue
		}
		m.peers[p.key()] = p
		m.places.Add(subscriber.Of(p.Addr), 1)
		m.old = append(m.old, p)
	}
	return m, nil
}

// rename gives a peer the key that it has now: versions before had others.
func (m *Monitor) rename(ctx context.Context, key string, p Peer) error {
	if key == p.key() {
		return nil
	}
	if err := m.put(ctx, p.key(), p.encode()); err != nil {
		return err
	}
	return m.put(ctx, key, nil)
}

// Left returns the peers of the process before.
func (m *Monitor) Left() []Peer { return slices.Clone(m.old) }

// State returns the state number: odd, greater after each start.
func (m *Monitor) State() uint32 { return m.state }

// Watch makes p durable, so that it hears of a restart. Watch and Forget of one
// peer do not run at the same time.
func (m *Monitor) Watch(ctx context.Context, p Peer) error {
	key := p.key()
	m.mu.Lock()
	_, known := m.peers[key]
	if !known && !m.places.Take(subscriber.Of(p.Addr), 1) {
		m.mu.Unlock()
		return ErrTooManyPeers
	}
	m.peers[key] = p
	m.mu.Unlock()
	err := m.put(ctx, key, p.encode())
	if err != nil && !known {
		m.drop(p)
	}
	return err
}

// Forget is the opposite of Watch.
func (m *Monitor) Forget(ctx context.Context, p Peer) error {
	if err := m.put(ctx, p.key(), nil); err != nil {
		return err
	}
	m.drop(p)
	return nil
}

func (m *Monitor) drop(p Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.peers[p.key()]; known {
		delete(m.peers, p.key())
		m.places.Give(subscriber.Of(p.Addr), 1)
	}
}

func (m *Monitor) put(ctx context.Context, key string, value []byte) error {
	err := m.cfg.Store.UpdateSetting(ctx, m.prefix+"peer/"+key, func([]byte) ([]byte, error) { return value, nil })
	if err != nil {
		return fmt.Errorf("nsm: storing a peer: %w", err)
	}
	return nil
}

// Len returns the number of peers.
func (m *Monitor) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.peers)
}
