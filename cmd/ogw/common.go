package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
)

// commonFlags are those of every command.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "read the configuration from `FILE` (OGW_CONFIG)"},
		&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Usage: "data `FOLDER` (cluster.dir, OGW_CLUSTER_DIR)"},
		&cli.StringSliceFlag{Name: "set", Usage: "override one `KEY=VALUE`, such as log.level=debug"},
		&cli.StringFlag{Name: "admin", Usage: "talk to the admin API at `URL` instead of the data folder's process"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON"},
	}
}

// common is what every command knows.
type common struct {
	env     *environment
	json    bool
	sources config.Sources
	remote  string // URL of an admin API
	cfg     *config.Config
}

// ParseFlags reads the common flags.
func (o *common) ParseFlags(c *cli.Context) error {
	o.json = c.Bool("json")
	o.remote = strings.TrimSuffix(c.String("admin"), "/")
	o.sources = config.Sources{File: c.String("config"), Environ: o.env.environ, Set: c.StringSlice("set")}
	if o.sources.File == "" {
		o.sources.File = o.getenv("OGW_CONFIG")
	}
	if dir := c.String("dir"); dir != "" {
		o.sources.Set = append(o.sources.Set, "cluster.dir="+dir)
	}
	return nil
}

func (o *common) getenv(name string) string { return o.env.getenv(name) }

// Validate loads the configuration.
func (o *common) Validate() (err error) {
	if o.remote != "" && !strings.HasPrefix(o.remote, "http://") && !strings.HasPrefix(o.remote, "https://") {
		return fmt.Errorf("--admin %s is not a URL such as https://gateway:9090", o.remote)
	}
	o.cfg, err = config.Load(o.sources)
	if err != nil {
		return wrongConfig(err)
	}
	return nil
}

// wrongConfig shows each of the errors of a configuration on a line of its own.
func wrongConfig(err error) error {
	return fmt.Errorf("configuration is wrong:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// noArgs refuses arguments.
func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return fmt.Errorf("%s takes no arguments; there is %q", c.Command.HelpName, c.Args().First())
	}
	return nil
}

// oneArg returns the only argument.
func oneArg(c *cli.Context, what string) (string, error) {
	if c.Args().Len() != 1 || c.Args().First() == "" {
		return "", fmt.Errorf("%s takes one argument: %s", c.Command.HelpName, what)
	}
	return c.Args().First(), nil
}

// twoArgs returns the only two arguments.
func twoArgs(c *cli.Context, first, second string) (string, string, error) {
	a := c.Args().Slice()
	if len(a) != 2 || a[0] == "" || a[1] == "" {
		return "", "", fmt.Errorf("%s takes two arguments: %s and %s", c.Command.HelpName, first, second)
	}
	return a[0], a[1], nil
}

// printJSON prints v, indented.
func (o *common) printJSON(v any) error {
	e := json.NewEncoder(o.env.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printf prints to the standard output. The command goes on after an error, with
// which run ends: what was to be read once, such as a key, is lost.
func (o *common) printf(format string, args ...any) {
	_, err := fmt.Fprintf(o.env.stdout, format, args...)
	if o.env.unsaid == nil {
		o.env.unsaid = err
	}
}

// table prints rows of columns.
func (o *common) table(rows [][]string) error {
	w := tabwriter.NewWriter(o.env.stdout, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		if _, err := io.WriteString(w, strings.Join(r, "\t")+"\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}

// logger returns the log of a process.
func (o *common) logger(level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if o.cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(o.env.stderr, opts))
	}
	return slog.New(slog.NewTextHandler(o.env.stderr, opts))
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// bytesText is a size for people.
func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// plural returns noun in the number that n asks for.
func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
