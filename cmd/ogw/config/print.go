package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// hidden stands for secrets in what is printed.
const hidden = "(hidden)"

// Write prints the configuration as TOML with the meaning of every key;
// secrets only on demand.
func (c *Config) Write(w io.Writer, secrets bool) error {
	p := &printer{secrets: secrets}
	root := reflect.ValueOf(*c)
	for f := range fields(root.Type()) {
		if f.Type.Kind() == reflect.Struct {
			p.b.WriteString("[" + f.Tag.Get("toml") + "]\n")
			p.table(root.FieldByIndex(f.Index), "", false)
		}
	}
	for _, g := range c.Gateways {
		p.b.WriteString("[[gateway]]\n")
		p.table(reflect.ValueOf(g), g.Protocol, false)
		for _, e := range g.Exports {
			p.b.WriteString("[[gateway.export]]\n")
			p.table(reflect.ValueOf(e), "", true)
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// Redacted returns a copy without secrets.
func (c *Config) Redacted() *Config {
	out := *c
	if out.Admin.Token != "" {
		out.Admin.Token = hidden
	}
	out.Gateways = append([]Gateway(nil), c.Gateways...)
	for i := range out.Gateways {
		if n := len(out.Gateways[i].Tokens); n > 0 {
			out.Gateways[i].Tokens = []string{fmt.Sprintf("%s: %d", hidden, n)}
		}
	}
	return &out
}

type printer struct {
	b       strings.Builder
	secrets bool
}

// table prints the keys of a struct that protocol has, unset ones commented.
func (p *printer) table(v reflect.Value, protocol string, skipZero bool) {
	for f := range fields(v.Type()) {
		protocols := f.Tag.Get("for")
		value := v.FieldByIndex(f.Index)
		if protocol != "" && protocols != "" && !strings.Contains(" "+protocols+" ", " "+protocol+" ") ||
			f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct || skipZero && value.IsZero() {
			continue
		}
		line := f.Tag.Get("toml") + " = " + p.value(value, f.Tag.Get("secret") != "")
		if value.Kind() == reflect.Pointer && value.IsNil() || protocols != "" && value.IsZero() {
			line = "# " + line
		}
		fmt.Fprintf(&p.b, "%-32s # %s\n", line, f.Tag.Get("doc"))
	}
	p.b.WriteByte('\n')
}

func (p *printer) value(v reflect.Value, secret bool) string {
	switch x := v.Interface().(type) {
	case string:
		if secret && x != "" && !p.secrets {
			x = hidden
		}
		return strconv.Quote(x)
	case []string:
		var out []string
		for _, s := range x {
			if secret && !p.secrets {
				s = hidden
			}
			out = append(out, strconv.Quote(s))
		}
		return "[" + strings.Join(out, ", ") + "]"
	case Size, Mode, time.Duration:
		return `"` + fmt.Sprint(x) + `"`
	case *uint32:
		if x == nil {
			return "0"
		}
		return strconv.FormatUint(uint64(*x), 10)
	}
	return fmt.Sprint(v.Interface())
}
