package doors

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// REST is a REST gateway.
type REST struct {
	base string
}

var _ Object = (*REST)(nil)

// NewREST returns the gateway at host:port.
func NewREST(addr string) *REST { return &REST{"http://" + addr + "/"} }

// Name implements Door.
func (d *REST) Name() string { return "rest" }

// Write implements Door.
func (d *REST) Write(path, body string) error {
	_, err := d.do(http.MethodPut, path, body)
	return err
}

// Read implements Door.
func (d *REST) Read(path string) (string, error) { return d.do(http.MethodGet, path, "") }

// Delete implements Object.
func (d *REST) Delete(path string) error {
	_, err := d.do(http.MethodDelete, path, "")
	return err
}

func (d *REST) do(method, path, body string) (string, error) {
	r, err := http.NewRequest(method, d.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusNotFound:
		err = fmt.Errorf("%s %s: %w: %.200s", method, path, ErrAbsent, b)
	case resp.StatusCode/100 != 2:
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, b)
	}
	return string(b), err
}
