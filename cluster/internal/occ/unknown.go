package occ

import (
	"errors"
	"fmt"

	"ogw/cluster"
)

var errUnknown = fmt.Errorf("%w: a commit may have happened", cluster.ErrUnavailable)

// Unknown returns the error of a commit that may have happened, or may come to, since its
// answer was lost by cause.
func Unknown(cause error) error {
	return cluster.Because(errUnknown, cause)
}

// IsUnknown reports whether err is one of those.
func IsUnknown(err error) bool { return errors.Is(err, errUnknown) }
