package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/audit"
)

// auditList prints the audit log.
type auditList struct {
	common
	follow bool
	last   int // lines at the end, 0 for all
	since  time.Time
	want   map[string]string // by the names of fields
}

// auditFilters are the flags that choose lines by a field; of are the values that there
// are, of a field that has no others.
var auditFilters = []struct {
	name, usage string
	of          []string
}{
	{"class", "only `CLASS`: ", []string{string(audit.Admin), string(audit.Access), string(audit.Data)}},
	{"user", "only what `NAME` did (name, ID or uid)", nil},
	{"from", "only from `ADDRESS`, whatever its port", nil},
	{"door", "only through `DOOR`: ", []string{"s3", "iam", "rest", "nfs", "fuse", "admin", "process"}},
	{"operation", "only `OPERATION`, such as CreateBucket", nil},
	{"target", "only what concerns `PATH` or what is below it", nil},
	{"result", "only `RESULT`: ", []string{string(audit.OK), string(audit.Refused), string(audit.Failed)}},
	{"request", "only the request with `ID`", nil},
}

func auditCommand(env *environment) *cli.Command {
	flags := append(commonFlags(),
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what comes, until interrupted"},
		&cli.IntFlag{Name: "last", Aliases: []string{"n"}, Usage: "only the last `N` that fit", DefaultText: "all"},
		&cli.StringFlag{Name: "since", Usage: "only from `TIME` on (2026-12-31T00:00:00Z), or for a duration (24h)"})
	for _, f := range auditFilters {
		flags = append(flags, &cli.StringFlag{Name: f.name, Usage: f.usage + strings.Join(f.of, ", ")})
	}
	return &cli.Command{
		Name: "audit", Usage: "print, filter and follow the audit log: who did what, from where",
		Description: "--json prints the lines as they are stored.",
		Flags:       flags,
		Action:      action(func() command { return &auditList{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (a *auditList) ParseFlags(c *cli.Context) error {
	if err := errors.Join(noArgs(c), a.common.ParseFlags(c)); err != nil {
		return err
	}
	a.follow, a.last = c.Bool("follow"), c.Int("last")
	a.want = map[string]string{}
	for _, f := range auditFilters {
		v := c.String(f.name)
		if v == "" {
			continue
		}
		if f.of != nil && !slices.Contains(f.of, v) { // no line would look as if nothing had happened
			return fmt.Errorf("--%s %q is none of %s", f.name, v, strings.Join(f.of, ", "))
		}
		a.want[f.name] = v
	}
	if a.last < 0 {
		return fmt.Errorf("--last %d is negative", a.last)
	}
	if s := c.String("since"); s != "" {
		if d, err := time.ParseDuration(s); err == nil {
			a.since = time.Now().Add(-d)
			return nil
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return fmt.Errorf("--since %q is neither a time such as 2026-12-31T00:00:00Z nor a duration such as 24h", s)
		}
		a.since = t
	}
	return nil
}

// Validate implements command.
func (a *auditList) Validate() error {
	if err := a.common.Validate(); err != nil {
		return err
	}
	switch {
	case a.remote != "":
		return errors.New("the audit log is read on the machine that wrote it: --admin does not reach it")
	case a.cfg.Audit.Syslog != "":
		return fmt.Errorf("the audit log goes to the syslog server %s: look there", a.cfg.Audit.Syslog)
	}
	return nil
}

// Run implements command.
func (a *auditList) Run(ctx context.Context) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	path := a.cfg.AuditFile()
	err := a.run(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &exitError{exitNotFound, fmt.Errorf("there is no audit log %s", path)}
	case errors.Is(err, syscall.EPIPE):
		return nil // such as head(1)
	}
	return err
}

// errSeen ends a pass over the log.
var errSeen = errors.New("seen")

func (a *auditList) run(ctx context.Context, path string) error {
	skip := 0
	if a.last > 0 {
		total := 0
		if err := audit.Read(ctx, path, a.cfg.Audit.Keep, false, func(_ []byte, l *audit.Line) error {
			if a.fits(l) {
				total++
			}
			return ctx.Err()
		}); err != nil {
			return err
		}
		skip = max(0, total-a.last)
	}
	err := audit.Read(ctx, path, a.cfg.Audit.Keep, a.follow, func(raw []byte, l *audit.Line) error {
		if !a.fits(l) {
			return ctx.Err()
		}
		if skip > 0 {
			skip--
			return nil
		}
		if err := a.print(raw, l); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return nil
	}
	return err
}

func (a *auditList) print(raw []byte, l *audit.Line) error {
	text := string(raw)
	if !a.json {
		text = auditText(l)
	}
	_, err := fmt.Fprintln(a.env.stdout, text)
	return err
}

// fits reports whether a line was asked for.
func (a *auditList) fits(l *audit.Line) bool {
	if l.Time.Before(a.since) {
		return false
	}
	for field, want := range a.want {
		ok := false
		switch field {
		case "class":
			ok = string(l.Class) == want
		case "user":
			ok = l.User == want || l.UserID == want || l.UID != nil && fmt.Sprint(*l.UID) == want
		case "from":
			ok = l.From == want || strings.HasPrefix(l.From, want+":") || strings.HasPrefix(l.From, "["+want+"]:") ||
				strings.HasPrefix(l.From, want+",")
		case "door":
			ok = l.Door == want
		case "operation":
			ok = strings.EqualFold(l.Operation, want)
		case "target":
			ok = concerns(l, strings.Trim(want, "/"))
		case "result":
			ok = string(l.Result) == want
		case "request":
			ok = l.Request == want
		}
		if !ok {
			return false
		}
	}
	return true
}

// concerns reports whether a line is about a path or what is below it.
func concerns(l *audit.Line, path string) bool {
	below := func(target string) bool { return target == path || strings.HasPrefix(target, path+"/") }
	target := strings.Trim(l.Target, "/")
	return path == "" && l.Target != "" || below(target) ||
		slices.ContainsFunc(l.Keys, func(k string) bool { return below(target + "/" + strings.TrimSuffix(k, "/")) })
}

// auditText is a line for people.
func auditText(l *audit.Line) string {
	who := l.User
	if who == "" {
		who = "-"
	}
	if l.UID != nil {
		who += fmt.Sprintf("(%d)", *l.UID)
	}
	out := fmt.Sprintf("%s  %-6s %-7s %s %s %s", l.Time.Local().Format("2006-01-02 15:04:05.000"),
		l.Class, l.Result, l.Door, l.Operation, l.Target)
	out += "  by " + who
	for _, f := range []struct{ word, value string }{
		{"from", l.From}, {"error", l.Error}, {"set", l.Detail}, {"request", l.Request},
	} {
		if f.value != "" {
			out += "  " + f.word + " " + f.value
		}
	}
	if len(l.Keys) > 0 {
		out += `  keys "` + strings.Join(l.Keys, `" "`) + `"`
	}
	if l.Count > 0 {
		out += fmt.Sprintf("  %d times", l.Count)
	}
	return out
}
