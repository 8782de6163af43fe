package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// envPrefix begins the names of all variables.
const envPrefix = "OGW_"

// Variables that are not keys of a section: they are read elsewhere.
var otherVariables = map[string]bool{
	"OGW_CONFIG": true, "OGW_CLUSTER_KEY": true, "OGW_S3_LISTEN": true, "OGW_REST_LISTEN": true, "OGW_NFS_LISTEN": true,
}

// readEnviron takes the variables OGW_SECTION_KEY. Others that begin with
// OGW_ are left alone: container systems invent such names.
func (c *Config) readEnviron(environ []string) (wrong []error) {
	byVariable := map[string]string{}
	for _, key := range sectionKeys() {
		byVariable[variable(key)] = key
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		key, ok := byVariable[name]
		if !ok || value == "" {
			continue
		}
		if err := c.set(key, value); err != nil {
			wrong = append(wrong, fmt.Errorf("environment %s: %w", name, err))
		}
	}
	return wrong
}

// UnknownVariables returns the variables that look like ours and are not.
func UnknownVariables(environ []string) []string {
	known := map[string]bool{}
	for _, key := range sectionKeys() {
		known[variable(key)] = true
	}
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, envPrefix) && !known[name] && !otherVariables[name] {
			out = append(out, name)
		}
	}
	return out
}

// maxSlips is how far from a variable of ours another is taken for a misspelt one. Those
// that container systems invent (OGW_SERVICE_HOST) are further away.
const maxSlips = 2

// MeantVariable returns the variable of ours that an unknown one was likely to be, or "".
func MeantVariable(name string) string {
	for _, key := range sectionKeys() {
		if v := variable(key); distance(name, v) <= maxSlips {
			return v
		}
	}
	for v := range otherVariables {
		if distance(name, v) <= maxSlips {
			return v
		}
	}
	return ""
}

func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func envListen(environ []string, protocol string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, envPrefix+strings.ToUpper(protocol)+"_LISTEN="); ok {
			return v
		}
	}
	return ""
}

// sectionKeys returns SECTION.KEY of every key outside of gateways.
func sectionKeys() []string {
	var out []string
	for _, key := range Keys() {
		if strings.Contains(key, ".") && !strings.HasPrefix(key, "gateway.") {
			out = append(out, key)
		}
	}
	return out
}

// set changes one key of a section.
func (c *Config) set(key, value string) error {
	section, name, _ := strings.Cut(key, ".")
	for s := range fields(reflect.TypeFor[Config]()) {
		if s.Tag.Get("toml") != section || s.Type.Kind() != reflect.Struct {
			continue
		}
		for f := range fields(s.Type) {
			if f.Tag.Get("toml") == name {
				c.give(key)
				delete(c.lines, key)
				return setValue(reflect.ValueOf(c).Elem().FieldByIndex(s.Index).FieldByIndex(f.Index), value)
			}
		}
	}
	return fmt.Errorf("unknown key %q%s", key, Suggestion(key, sectionKeys()))
}

func setValue(v reflect.Value, s string) (err error) {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = s
	case *bool:
		if *p, err = strconv.ParseBool(s); err != nil {
			err = fmt.Errorf("%q is neither true nor false", s)
		}
	case *int:
		if *p, err = strconv.Atoi(s); err != nil {
			err = fmt.Errorf("%q is not a number", s)
		}
	case *Duration:
		*p, err = ParseDuration(s)
	case *Size:
		*p, err = ParseSize(s)
	case *Mode:
		*p, err = ParseMode(s)
	default:
		err = fmt.Errorf("a %s can be set in the file only", v.Type())
	}
	return err
}
