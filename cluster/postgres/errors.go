package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ogw/cluster"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes (PostgreSQL's documentation, appendix A).
const (
	codeDeadlock       = "40P01"
	codeLockTimeout    = "55P03"
	codeOutOfMemory    = "53200" // the table of locks is full
	codeDiskFull       = "53100"
	codeReadOnly       = "25006" // a standby, or default_transaction_read_only
	codeSerialization  = "40001"
	classOperatorEnded = "57"
)

// tryAgain are refusals of a commit for the sake of others.
var tryAgain = []string{codeDeadlock, codeLockTimeout, codeOutOfMemory, codeSerialization}

// asServer returns the server's error, or nil if there is none in err.
func asServer(err error) *pgconn.PgError {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// isRefusal reports whether err means that the commit had no effect: the server
// answered, and goes on.
func isRefusal(err error) bool {
	e := asServer(err)
	return e != nil && !strings.HasPrefix(e.Code, classOperatorEnded) && e.Severity == "ERROR"
}

// isLost reports whether err says nothing of what was asked: the connection was lost, or ended by
// the server, or there was no answer in time.
func isLost(err error) bool { return err != nil && !isRefusal(err) }

// isBusy reports whether the commit may be tried again as after a conflict.
func isBusy(err error) bool {
	e := asServer(err)
	return e != nil && slices.Contains(tryAgain, e.Code)
}

// mapError returns an error of package cluster.
func mapError(err error) error {
	class := cluster.ErrUnavailable
	if err == nil {
		return nil
	}
	if e := asServer(err); e != nil {
		switch e.Code {
		case codeDiskFull:
			class = cluster.ErrNoSpace
		case codeReadOnly:
			class = cluster.ErrReadOnly
		}
	}
	return cluster.Because(class, err)
}

// callerOr returns why the caller of a query gave up, else the mapped err.
func callerOr(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e := ctx.Err(); e != nil {
		return e
	}
	return mapError(err)
}
