package config

import "fmt"

// validator gathers what is wrong with a configuration.
type validator struct {
	prefix string
	errs   []error
}

func (v *validator) bad(key, format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("%s%s: %s", v.prefix, key, fmt.Sprintf(format, args...)))
}
