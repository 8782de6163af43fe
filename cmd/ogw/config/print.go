package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
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

// Map returns the configuration under the names that the file has; secrets
// only on demand. Keys of other protocols than a gateway's are left out.
func (c *Config) Map(secrets bool) map[string]any {
	p := &printer{secrets: secrets}
	out := map[string]any{}
	root := reflect.ValueOf(*c)
	for f := range fields(root.Type()) {
		if f.Type.Kind() == reflect.Struct {
			out[f.Tag.Get("toml")] = p.section(root.FieldByIndex(f.Index), "")
		}
	}
	gateways := []map[string]any{}
	for _, g := range c.Gateways {
		m := p.section(reflect.ValueOf(g), g.Protocol)
		if g.Protocol == "nfs" {
			exports := []map[string]any{}
			for _, e := range g.Exports {
				exports = append(exports, p.section(reflect.ValueOf(e), ""))
			}
			m["export"] = exports
		}
		gateways = append(gateways, m)
	}
	out["gateway"] = gateways
	return out
}

// section returns a table's keys and values as JSON shows them best.
func (p *printer) section(v reflect.Value, protocol string) map[string]any {
	out := map[string]any{}
	for f := range fields(v.Type()) {
		if !belongs(f, protocol) {
			continue
		}
		value := v.FieldByIndex(f.Index)
		secret := f.Tag.Get("secret") != "" && !p.secrets
		switch x := value.Interface().(type) {
		case string:
			if secret && x != "" {
				x = hidden
			}
			out[f.Tag.Get("toml")] = x
		case []string:
			list := make([]string, len(x))
			for i := range x {
				if list[i] = x[i]; secret {
					list[i] = hidden
				}
			}
			out[f.Tag.Get("toml")] = list
		default:
			out[f.Tag.Get("toml")] = x
		}
	}
	return out
}

// belongs reports whether a gateway of the protocol has a key; tables of tables
// stand for themselves.
func belongs(f reflect.StructField, protocol string) bool {
	protocols := f.Tag.Get("for")
	if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
		return false
	}
	return protocol == "" || protocols == "" || strings.Contains(" "+protocols+" ", " "+protocol+" ")
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
		if !belongs(f, protocol) || skipZero && value.IsZero() {
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
	case V2:
		return strconv.Quote(string(x))
	case Size, Mode, Duration:
		return `"` + fmt.Sprint(x) + `"`
	case *uint32:
		if x == nil {
			return "0"
		}
		return strconv.FormatUint(uint64(*x), 10)
	}
	return fmt.Sprint(v.Interface())
}
