package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// A connection that ended is not the end of what is read.
func TestBecause(t *testing.T) {
	for _, cause := range []error{io.EOF, io.ErrUnexpectedEOF, fmt.Errorf("dial: %w", io.EOF), errors.Join(os.ErrDeadlineExceeded, io.EOF)} {
		err := Because(ErrUnavailable, cause)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%v became %v", cause, err)
		}
	}
	if err := Because(ErrNoSpace, os.ErrDeadlineExceeded); !errors.Is(err, ErrNoSpace) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
