package config

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes: "64MiB", "1.5G", "4096". KB, MB, GB and TB are
// powers of 1000, KiB and K and so on of 1024.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1}, {"", 1},
}

// ParseSize reads a Size.
func ParseSize(s string) (Size, error) {
	lower := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(lower, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || math.IsNaN(n) || n*u.bytes >= math.MaxInt64 {
			break
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 64MiB, 1.5G or 4096", s)
}

// UnmarshalTOML takes a string or a number of bytes.
func (s *Size) UnmarshalTOML(v any) (err error) {
	switch v := v.(type) {
	case string:
		*s, err = ParseSize(v)
		return err
	case int64:
		if v >= 0 {
			*s = Size(v)
			return nil
		}
	}
	return fmt.Errorf("%v is not a size such as \"64MiB\" or 4096", v)
}

// String returns the shortest exact form.
func (s Size) String() string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		n := int64(1) << (10 * (1 + strings.IndexByte("KMGT", u[0])))
		if int64(s) >= n && int64(s)%n == 0 {
			return strconv.FormatInt(int64(s)/n, 10) + u
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Duration is a time with its unit: "30s", "1m30s".
type Duration time.Duration

// ParseDuration reads a Duration.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 30s", s)
	}
	return Duration(d), nil
}

// UnmarshalTOML takes a string, or 0. Any other number would need a unit.
func (d *Duration) UnmarshalTOML(v any) (err error) {
	switch v := v.(type) {
	case string:
		*d, err = ParseDuration(v)
		return err
	case int64:
		if v == 0 {
			*d = 0
			return nil
		}
		return fmt.Errorf("%d has no unit; a duration is written \"30s\" or \"1m30s\"", v)
	}
	return fmt.Errorf("%v is not a duration such as \"30s\"", v)
}

// String returns it as package time does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Mode are permission bits, written in octal: "0644".
type Mode uint32

// ParseMode reads a Mode.
func ParseMode(s string) (Mode, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil || n > 0o777 {
		return 0, fmt.Errorf("%q is not a mode such as \"0644\"", s)
	}
	return Mode(n), nil
}

// FileMode is m as package os has it.
func (m Mode) FileMode() os.FileMode { return os.FileMode(m) }

// UnmarshalTOML takes a string, or TOML's octal integer 0o644.
func (m *Mode) UnmarshalTOML(v any) (err error) {
	switch v := v.(type) {
	case string:
		*m, err = ParseMode(v)
		return err
	case int64:
		if v >= 0 && v <= 0o777 {
			*m = Mode(v)
			return nil
		}
	}
	return fmt.Errorf("%v is not a mode such as \"0644\"", v)
}

// String returns four octal digits.
func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText writes String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// V2 says where Signature Version 2 is accepted; "" is V2URLs.
type V2 string

// The values of V2.
const (
	V2URLs V2 = "urls" // presigned URLs and forms
	V2All  V2 = "all"  // headers, too
	V2None V2 = "none"
)

// UnmarshalTOML takes one of the values; true is "all" and false "none", as
// this key was written before it had three.
func (x *V2) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case bool:
		if *x = V2None; v {
			*x = V2All
		}
		return nil
	case string:
		switch V2(v) {
		case "", V2URLs, V2All, V2None:
			*x = V2(v)
			return nil
		}
	}
	return fmt.Errorf("%v is none of \"urls\", \"all\" and \"none\"", v)
}
