package httpapi

// SendError is a response that broke off after its header was sent. The
// connection must be dropped (panic with http.ErrAbortHandler), so that the
// client does not take the part for the whole.
type SendError struct {
	Read bool // the store failed, not the client
	Err  error
}

// Error implements error.
func (e *SendError) Error() string {
	if e.Read {
		return "read content: " + e.Err.Error()
	}
	return "send response: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
