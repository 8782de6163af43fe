package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxFileBytes bounds a configuration file: a wrong argument (a disk image)
// is noticed before it is read.
const maxFileBytes = 1 << 20

// Sources are where the configuration comes from, the weakest first.
type Sources struct {
	File    string            // "" for none
	Environ []string          // as os.Environ
	Set     []string          // SECTION.KEY=VALUE
	Listen  map[string]string // protocol to address or "off"
}

// Load reads and validates everything.
func Load(s Sources) (*Config, error) {
	c := Default()
	if s.File != "" {
		if err := c.readFile(s.File); err != nil {
			return nil, err
		}
	}
	if err := c.readEnviron(s.Environ); err != nil {
		return nil, err
	}
	for _, kv := range s.Set {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, fmt.Errorf("--set %s: want SECTION.KEY=VALUE", kv)
		}
		if err := c.set(strings.TrimSpace(key), value); err != nil {
			return nil, fmt.Errorf("--set %s: %w", key, err) // the value may be a secret
		}
	}
	if len(c.Gateways) == 0 && c.File == "" {
		for _, p := range []string{"s3", "rest", "nfs"} {
			if p != "nfs" || c.Cluster.Gateways == OneGateway {
				c.Gateways = append(c.Gateways, Gateway{Protocol: p, Moves: true})
			}
		}
	}
	for _, protocol := range []string{"s3", "rest", "nfs"} {
		listen := envListen(s.Environ, protocol)
		if v, ok := s.Listen[protocol]; ok {
			listen = v
		}
		if listen != "" {
			c.setListen(protocol, listen)
		}
	}
	c.fillGateways()
	if err := absolute(reflect.ValueOf(c).Elem()); err != nil {
		return nil, err
	}
	return c, c.Validate()
}

// absolute makes the names of files in a table, and in those within it, absolute;
// "" stays.
func absolute(table reflect.Value) error {
	for f := range fields(table.Type()) {
		v := table.FieldByIndex(f.Index)
		switch {
		case v.Kind() == reflect.Struct:
			if err := absolute(v); err != nil {
				return err
			}
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			for i := range v.Len() {
				if err := absolute(v.Index(i)); err != nil {
					return err
				}
			}
		case f.Tag.Get("path") != "" && v.String() != "":
			path, err := filepath.Abs(v.String())
			if err != nil {
				return err
			}
			v.SetString(path)
		}
	}
	return nil
}

func (c *Config) readFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Size() > maxFileBytes {
		return fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := c.parse(string(text)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.File = name
	return nil
}

// parse reads TOML and refuses keys that do not exist.
func (c *Config) parse(text string) error {
	md, err := toml.Decode(text, c)
	if err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			where := fmt.Sprintf("line %d", p.Position.Line)
			if p.LastKey != "" {
				where += fmt.Sprintf(", key %q", p.LastKey)
			}
			return fmt.Errorf("%s: %s", where, p.Message)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	for _, key := range md.Keys() {
		c.give(key.String())
	}
	var unknown []error
	for _, key := range md.Undecoded() {
		name := key.String()
		if slices.ContainsFunc(unknown, func(e error) bool { return strings.Contains(e.Error(), "\""+name+"\"") }) {
			continue // a second [[gateway]] with the same mistake
		}
		e := fmt.Errorf("unknown key %q%s", name, Suggestion(name, Keys()))
		if line := lineOf(text, key); line > 0 {
			e = fmt.Errorf("line %d: %w", line, e)
		}
		unknown = append(unknown, e)
	}
	return errors.Join(unknown...)
}

// give notes that somebody set a key.
func (c *Config) give(key string) {
	if c.given == nil {
		c.given = make(map[string]bool)
	}
	c.given[key] = true
}

// Given reports whether a key, as in Keys, was set by the file, the environment
// or the command line, be it to its default.
func (c *Config) Given(key string) bool { return c.given[key] }

// setListen moves, adds or (with "off") removes gateways of a protocol.
func (c *Config) setListen(protocol, listen string) {
	if listen == "off" {
		c.Gateways = slices.DeleteFunc(c.Gateways, func(g Gateway) bool { return g.Protocol == protocol })
		return
	}
	for i := range c.Gateways {
		if c.Gateways[i].Protocol == protocol {
			c.Gateways[i].Listen, c.Gateways[i].Moves = listen, false
			return
		}
	}
	c.Gateways = append(c.Gateways, Gateway{Protocol: protocol, Listen: listen})
}

// fillGateways gives each gateway its address and a name of its own.
func (c *Config) fillGateways() {
	seen := map[string]int{}
	for i := range c.Gateways {
		g := &c.Gateways[i]
		if g.Listen == "" {
			g.Listen = defaultListen[g.Protocol]
		}
		if g.Protocol == "nfs" {
			g.fillNFS()
		}
		if _, ok := SocketPath(g.Listen); ok && g.SocketMode == 0 {
			g.SocketMode = defaultSocketMode
		}
		if g.Name == "" {
			g.Name = g.Protocol
			if n := seen[g.Protocol]; n > 0 {
				g.Name = fmt.Sprintf("%s-%d", g.Protocol, n+1)
			}
		}
		seen[g.Protocol]++
		if g.Listen != "" && !strings.Contains(g.Listen, ":") {
			g.Listen = ":" + g.Listen // a port alone
		}
	}
}

func (g *Gateway) fillNFS() {
	if g.Portmap == "" {
		g.Portmap = "auto"
	}
	if g.Grace == 0 {
		g.Grace = Duration(DefaultGrace)
	}
}

// Keys returns every key that a file can have, dotted.
func Keys() []string {
	var out []string
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for f := range fields(t) {
			name := prefix + f.Tag.Get("toml")
			out = append(out, name)
			ft := f.Type
			if ft.Kind() == reflect.Slice {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				walk(ft, name+".")
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return out
}

// fields yields the fields of a struct that have a key.
func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if tag := f.Tag.Get("toml"); tag != "" && tag != "-" && !yield(f) {
				return
			}
		}
	}
}

// lineOf finds where a key stands, 0 if it cannot tell (keys in inline
// tables and the like).
func lineOf(text string, key toml.Key) int {
	table := ""
	want := key.String()
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, _, _ := strings.Cut(strings.TrimLeft(line, "["), "]")
			table = strings.TrimSpace(head) + "."
			if strings.TrimSuffix(table, ".") == want {
				return i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if ok && table+strings.Trim(strings.TrimSpace(name), `"'`) == want {
			return i + 1
		}
	}
	return 0
}
