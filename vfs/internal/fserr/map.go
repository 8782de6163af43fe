package fserr

import (
	"errors"
	"strings"

	"ogw/cluster"
)

// Map turns an engine's error into one of this package, keeping the chain.
func Map(err error) error {
	if err == nil {
		return nil
	}
	for _, m := range [...]struct{ from, to error }{
		{cluster.ErrConflict, ErrConflict},
		{cluster.ErrTxTooLarge, ErrTooLarge},
		{cluster.ErrUnavailable, ErrUnavailable},
		{cluster.ErrNotFound, ErrCorrupt}, // a blob that the metadata names is gone
		{cluster.ErrCorrupt, ErrCorrupt},
		{cluster.ErrNoSpace, ErrNoSpace},
		{cluster.ErrReadOnly, ErrReadOnly},
		{cluster.ErrClosed, ErrClosed},
		{cluster.ErrInvalid, ErrInvalid},
		{cluster.ErrExists, ErrIO},
	} {
		if errors.Is(err, m.from) && !errors.Is(err, m.to) {
			return mapped{m.to, err}
		}
	}
	return err
}

// mapped is an engine's error in the class to. Some classes have the same
// words here and there, which are said once.
type mapped struct{ to, err error }

// Error implements error.
func (e mapped) Error() string {
	class, text := e.to.Error(), e.err.Error()
	if strings.HasPrefix(text, class) {
		return text
	}
	return class + ": " + text
}

// Unwrap returns the class and the cause.
func (e mapped) Unwrap() []error { return []error{e.to, e.err} }
