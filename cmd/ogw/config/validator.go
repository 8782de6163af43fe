package config

import (
	"fmt"
	"strings"
)

// validator gathers what is wrong with a configuration.
type validator struct {
	file   string
	lines  map[string]int // of file, see Config
	prefix string
	errs   []error
}

func (v *validator) bad(key, format string, args ...any) {
	key = v.prefix + key
	line := v.lines[key]
	if line == 0 { // a gateway without the key
		line = v.lines[strings.TrimSuffix(v.prefix, ".")]
	}
	where := ""
	if line > 0 {
		where = fmt.Sprintf("%s: line %d: ", v.file, line)
	}
	v.errs = append(v.errs, fmt.Errorf("%s%s: %s", where, key, fmt.Sprintf(format, args...)))
}
