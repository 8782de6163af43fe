package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"ogw/httpapi/apierr"
)

// maxRequestBytes bounds a request body: they are a few fields each.
const maxRequestBytes = 64 << 10

// decode reads a request body; unknown fields are errors, so that a client
// which is newer than the server notices.
func decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		_, err = d.Token()
		if errors.Is(err, io.EOF) {
			tell(r, into)
			return nil
		}
		err = errors.New("more than one value")
	}
	return fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
}
