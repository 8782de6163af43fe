//go:build ceph

package librados

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ogw/cluster"
)

// command asks a monitor.
func (p *Pool) command(ctx context.Context, answer any, args map[string]any) error {
	args["format"] = "json"
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	got := make(chan []byte, 1)
	err = p.do(ctx, func() error {
		out, status, err := p.conn.MonCommand(text)
		if err != nil {
			return fmt.Errorf("%w: the monitor on %q: %s (%w)", cluster.ErrUnavailable, args["prefix"], status, err)
		}
		got <- out
		return nil
	}, func() {})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(<-got, answer); err != nil {
		return fmt.Errorf("%w: the monitor's answer to %q: %w", cluster.ErrUnavailable, args["prefix"], err)
	}
	return nil
}

// placement is where an object is.
type placement struct {
	PG      string `json:"pgid"`
	Up      []int  `json:"up"`
	Acting  []int  `json:"acting"`
	Primary int    `json:"acting_primary"`
}

// osd is what is known of one.
type osd struct {
	Host  string `json:"host"`
	Addrs struct {
		List []struct{ Type, Addr string } `json:"addrvec"`
	} `json:"addrs"`
	Location map[string]string `json:"crush_location"`
	devices  string
}

// Locate implements rados.Pool: the OSDs that serve the object, and those that are to.
func (p *Pool) Locate(ctx context.Context, name string) ([]cluster.Location, error) {
	var where placement
	if err := p.command(ctx, &where, map[string]any{
		"prefix": "osd map", "pool": p.options.Pool, "object": name, "nspace": p.options.Namespace,
	}); err != nil {
		return nil, err
	}
	var all []cluster.Location
	for _, id := range where.osds() {
		o, err := p.osd(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster.Location{
			Node: fmt.Sprintf("osd.%d on %s", id, o.Host), Address: o.address(),
			Path:    fmt.Sprintf("rados://%s/%s/%s", p.options.Pool, p.options.Namespace, name),
			Detail:  fmt.Sprintf("PG %s, %s; %s", where.PG, where.state(id), o.place()),
			Primary: id == where.Primary,
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no OSD serves PG %s", cluster.ErrUnavailable, where.PG)
	}
	return all, nil
}

// osds returns those that matter; Ceph writes a very large number for one that is missing.
func (w *placement) osds() (ids []int) {
	for _, id := range slices.Concat(w.Acting, w.Up) {
		if id >= 0 && id < 1<<30 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *placement) state(id int) string {
	switch {
	case !slices.Contains(w.Acting, id):
		return "up, not acting yet"
	case !slices.Contains(w.Up, id):
		return "acting until another one has a copy"
	}
	return "acting"
}

// osd asks for one.
func (p *Pool) osd(ctx context.Context, id int) (*osd, error) {
	var o osd
	if err := p.command(ctx, &o, map[string]any{"prefix": "osd find", "id": id}); err != nil {
		return nil, err
	}
	var more struct {
		Hostname string `json:"hostname"`
		Devices  string `json:"devices"`
	}
	// An OSD that never started has none.
	if err := p.command(ctx, &more, map[string]any{"prefix": "osd metadata", "id": id}); err == nil {
		o.devices = more.Devices
		if o.Host == "" {
			o.Host = more.Hostname
		}
	}
	return &o, nil
}

// address is that of messenger version 2, if it has one.
func (o *osd) address() string {
	addr := ""
	for _, a := range o.Addrs.List {
		if addr == "" || a.Type == "v2" {
			addr = a.Addr
		}
	}
	return addr
}

// place is the CRUSH location, and the devices.
func (o *osd) place() string {
	var at []string
	for _, kind := range slices.Sorted(maps.Keys(o.Location)) {
		at = append(at, kind+"="+o.Location[kind])
	}
	slices.Reverse(at) // root, rack, host: by chance the other way round in the alphabet
	text := "CRUSH " + strings.Join(at, " ")
	if o.devices != "" {
		text += "; devices " + o.devices
	}
	return text
}

// Usage implements rados.Pool: what the pool holds, and what Ceph expects that it can take,
// or its quota leaves.
func (p *Pool) Usage(ctx context.Context) (cluster.Usage, error) {
	var df struct {
		Pools []struct {
			ID    int64 `json:"id"`
			Stats struct {
				Stored   int64 `json:"stored"`
				MaxAvail int64 `json:"max_avail"`
				Quota    int64 `json:"quota_bytes"`
			} `json:"stats"`
		} `json:"pools"`
	}
	if err := p.command(ctx, &df, map[string]any{"prefix": "df", "detail": "detail"}); err != nil {
		return cluster.Usage{}, err
	}
	for _, pool := range df.Pools {
		if s := pool.Stats; pool.ID == p.id {
			free := s.MaxAvail
			if s.Quota > 0 {
				free = min(free, max(0, s.Quota-s.Stored))
			}
			return cluster.Usage{Total: s.Stored + free, Used: s.Stored, Free: free}, nil
		}
	}
	return cluster.Usage{}, fmt.Errorf("%w: pool %s is gone", cluster.ErrUnavailable, p.options.Pool)
}
