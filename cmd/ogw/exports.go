package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/nfsserver"
)

// exportCommand has a subcommand for each operation.
func exportCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &export{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "export", Usage: "add, list and revoke what NFS clients may mount",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "let clients mount a directory, at once and until revoked", "PATH",
				&cli.StringSliceFlag{Name: "client", Usage: "`NETWORK` or address that may mount it (again for more; default with --secret: all)"},
				&cli.BoolFlag{Name: "read-only", Usage: "refuse changes"},
				&cli.BoolFlag{Name: "insecure", Usage: "take calls from ports of 1024 and above, which any user of a client may use"},
				&cli.StringFlag{Name: "squash", Value: "root", Usage: "whose users become the anonymous one: root, all or none"},
				&cli.Int64Flag{Name: "anon-uid", Usage: "`NUMBER` of the anonymous user", DefaultText: itoa(nfsserver.DefaultAnonID)},
				&cli.Int64Flag{Name: "anon-gid", Usage: "`NUMBER` of its group", DefaultText: itoa(nfsserver.DefaultAnonID)},
				&cli.BoolFlag{Name: "secret", Usage: "make a secret that must stand in the mount path, and print it, once"},
				&cli.StringFlag{Name: "expires", Usage: "`TIME` (2026-12-31T00:00:00Z) or duration (72h) after which it ends"}),
			sub("list", "list all exports, the configured ones too", ""),
			sub("revoke", "end an export, for those who mounted it too", "ID"),
		},
	}
}

// export is one operation on exports.
type export struct {
	common
	op  string
	id  string
	add admin.AddExport
}

// ParseFlags implements command.
func (e *export) ParseFlags(c *cli.Context) (err error) {
	switch e.op {
	case "list":
		err = noArgs(c)
	case "revoke":
		e.id, err = oneArg(c, "the export's ID, as ogw export list prints it")
	default:
		err = e.parseAdd(c)
	}
	return errors.Join(err, e.common.ParseFlags(c))
}

func (e *export) parseAdd(c *cli.Context) error {
	var errs [4]error
	e.add.Path, errs[0] = oneArg(c, "the directory, such as /bucket")
	e.add.AnonUID, errs[1] = idFlag(c, "anon-uid")
	e.add.AnonGID, errs[2] = idFlag(c, "anon-gid")
	e.add.Expires, errs[3] = expiry(c.String("expires"), time.Now())
	e.add.Clients, e.add.ReadOnly = c.StringSlice("client"), c.Bool("read-only")
	e.add.Insecure = c.Bool("insecure")
	e.add.Squash, e.add.Secret = c.String("squash"), c.Bool("secret")
	return errors.Join(errs[:]...)
}

// expiry reads a time, or how long from now.
func expiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("--expires %q is neither a time such as 2026-12-31T00:00:00Z nor a duration such as 72h", s)
	}
	return t.UTC(), nil
}

// Run implements command.
func (e *export) Run(ctx context.Context) error {
	return e.with(ctx, func(s *session) error {
		switch e.op {
		case "add":
			return e.runAdd(ctx, s)
		case "revoke":
			if err := s.RevokeExport(ctx, e.id); err != nil {
				return err
			}
			if e.json {
				return e.printJSON(map[string]string{"revoked": e.id})
			}
			e.printf("export %s is revoked\n", e.id)
			return nil
		}
		return e.list(ctx, s)
	})
}

func (e *export) runAdd(ctx context.Context, s *session) error {
	x, err := s.AddExport(ctx, e.add)
	if err != nil {
		return err
	}
	var pending error
	if x.Pending != "" {
		pending = fmt.Errorf("export %s was added, but is not served yet: %s; the next change of exports, or a restart, has it served", x.ID, x.Pending)
	}
	if e.json {
		return errors.Join(e.printJSON(x), pending)
	}
	path := x.Path
	if x.Secret != "" {
		path += "@" + x.Secret
		e.printf("The secret is printed this once.\n")
	}
	gateways, err := e.nfsGateways(ctx, s)
	if err != nil { // what is printed once is printed all the same
		e.printf("export %s\npath    %s\n", x.ID, path)
		return errors.Join(pending, fmt.Errorf("export %s was added, but the gateways that it is mounted from are not known: %w", x.ID, err))
	}
	e.printf("export %s\n%s", x.ID, exportMounts(gateways, path))
	return pending
}

// nfsGateways are those that run, else those that the configuration names.
func (e *export) nfsGateways(ctx context.Context, s *session) (out []admin.Gateway, err error) {
	var all []admin.Gateway
	if s.running {
		st, err := s.Status(ctx)
		if err != nil {
			return nil, err
		}
		all = st.Gateways
	} else {
		for _, g := range e.cfg.Gateways {
			mapped := g.Portmap == "on" || g.Portmap == "serve" || g.Portmap == "auto" && !config.Loopback(g.Listen)
			all = append(all, admin.Gateway{Name: g.Name, Protocol: g.Protocol, Listen: g.Listen, Portmapper: mapped})
		}
	}
	for _, g := range all {
		if g.Protocol == "nfs" {
			out = append(out, g)
		}
	}
	return out, nil
}

// exportMounts are the command lines that mount path, one for each gateway.
func exportMounts(gateways []admin.Gateway, path string) string {
	if len(gateways) == 0 {
		return "mount   there is no NFS gateway yet: start one with ogw serve --nfs ADDRESS\n"
	}
	var b strings.Builder
	for _, g := range gateways {
		host, port := reachable(g.Listen)
		source := host + ":" + path
		if strings.Contains(host, ":") {
			source = "[" + host + "]:" + path
		}
		fmt.Fprintf(&b, "mount   sudo mount -t nfs -o %s %s DIR\n", nfsOptions(g, host, port), shellWord(source))
	}
	return b.String()
}

func (e *export) list(ctx context.Context, s *session) error {
	list, err := s.ListExports(ctx)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(list)
	}
	rows := [][]string{{"ID", "PATH", "CLIENTS", "OPTIONS", "EXPIRES"}}
	for _, x := range list {
		id, clients, expires := x.ID, strings.Join(x.Clients, " "), "never"
		if id == "" {
			id = "(" + x.Gateway + ")"
		}
		if clients == "" {
			clients = "all"
		}
		if !x.Expires.IsZero() {
			expires = x.Expires.Format(time.RFC3339)
			if !x.Expires.After(time.Now()) {
				expires += " (over)"
			}
		}
		rows = append(rows, []string{id, x.Path, clients, exportOptions(x), expires})
	}
	return e.table(rows)
}

// exportOptions is how an export restricts its users.
func exportOptions(x admin.Export) string {
	out := []string{"rw"}
	if x.ReadOnly {
		out[0] = "ro"
	}
	if x.Insecure {
		out = append(out, "insecure")
	}
	out = append(out, "squash="+x.Squash)
	if x.AnonUID != nil {
		out = append(out, "anon_uid="+itoa(int64(*x.AnonUID)))
	}
	if x.AnonGID != nil {
		out = append(out, "anon_gid="+itoa(int64(*x.AnonGID)))
	}
	if x.NeedsSecret {
		out = append(out, "secret")
	}
	return strings.Join(out, ",")
}
