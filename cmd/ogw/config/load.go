package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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
	wrong := slices.Concat(c.unknown, c.readEnviron(s.Environ))
	for _, kv := range s.Set {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			wrong = append(wrong, fmt.Errorf("--set %s: want SECTION.KEY=VALUE", kv))
		} else if err := c.set(strings.TrimSpace(key), value); err != nil {
			wrong = append(wrong, fmt.Errorf("--set %s: %w", key, err)) // the value may be a secret
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
	if err := errors.Join(append(wrong, c.Validate())...); err != nil {
		return nil, err
	}
	return c, nil
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
	c.File = name
	err = c.parse(string(text))
	for i, e := range c.unknown {
		c.unknown[i] = fmt.Errorf("%s: %w", name, e)
	}
	if err != nil { // values that were not read are not checked
		return errors.Join(append([]error{fmt.Errorf("%s: %w", name, err)}, c.unknown...)...)
	}
	return nil
}

// parse reads TOML. It notes keys that do not exist, and goes on.
func (c *Config) parse(text string) error {
	list := places(text)
	md, err := toml.Decode(text, c)
	if err != nil {
		// What else is wrong: a value of the wrong type has the rest left undecoded.
		var all map[string]any
		if md, other := toml.Decode(text, &all); other == nil {
			c.noteUnknown(list, md.Keys())
		}
		return explain(list, err)
	}
	for _, key := range md.Keys() {
		c.give(strings.ToLower(key.String()))
	}
	c.noteUnknown(list, md.Keys())
	c.lines = make(map[string]int, len(list))
	for _, p := range list {
		c.lines[p.key] = p.line
	}
	return nil
}

// explain is an error of TOML, with its line.
func explain(list []place, err error) error {
	for _, p := range list {
		if p.header && slices.Contains(tableLists, unnumbered(p.key)) && !strings.HasSuffix(p.key, "]") {
			name := unnumbered(p.key)
			return fmt.Errorf("line %d: there can be several: write [[%s]] instead of [%s]", p.line, name, name)
		}
	}
	var p toml.ParseError
	if !errors.As(err, &p) {
		return errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	where := fmt.Sprintf("line %d", p.Position.Line)
	if p.LastKey != "" {
		where += fmt.Sprintf(", key %q", p.LastKey)
	}
	return fmt.Errorf("%s: %s", where, p.Message)
}

// noteUnknown notes those of the keys that do not exist, each once. As TOML is decoded, a
// key is known whatever its case.
func (c *Config) noteUnknown(list []place, keys []toml.Key) {
	known, seen := Keys(), map[string]bool{}
	for _, key := range keys {
		name := key.String()
		lower := strings.ToLower(name)
		if seen[name] || slices.Contains(known, lower) {
			continue
		}
		seen[name] = true
		e := fmt.Errorf("unknown key %q%s", name, Suggestion(lower, known))
		if line := lineOf(list, name); line > 0 {
			e = fmt.Errorf("line %d: %w", line, e)
		}
		c.unknown = append(c.unknown, e)
	}
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
	for key := range c.lines { // the gateways are not those of the file any more
		if strings.HasPrefix(key, "gateway[") {
			delete(c.lines, key)
		}
	}
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
		if _, err := strconv.Atoi(g.Listen); err == nil {
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
