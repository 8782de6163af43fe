package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"ogw/httpapi/apierr"
	"ogw/httpapi/peer"
)

const (
	// dialTimeout bounds the wait for the socket: it is local.
	dialTimeout = 5 * time.Second
	// maxAnswerBytes bounds an answer: the listing of a million buckets fits.
	maxAnswerBytes = 256 << 20
)

// ErrNotRunning means that nobody answers at the socket.
var ErrNotRunning = errors.New("no process serves this data folder")

// Error is what a server answered.
type Error struct {
	Status  int
	Code    string // see apierr.Table
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Client speaks to a Server.
type Client struct {
	http  *http.Client
	token string
	base  string
}

// Dial returns a client of the process that listens at a Unix socket, and
// ErrNotRunning if there is none.
func Dial(ctx context.Context, socket string) (*Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, release, err := peer.ShortPath(socket)
		if err != nil {
			return nil, err
		}
		defer release()
		d := net.Dialer{Timeout: dialTimeout}
		return d.DialContext(ctx, "unix", path)
	}
	conn, err := dial(ctx, "", "")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, ErrNotRunning
		}
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("the data folder, or the process that serves it, is another user's; run this as that user, or as root: %w", err)
		}
		return nil, fmt.Errorf("connect to the running process: %w", err)
	}
	_ = conn.Close()
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://ogw"}, nil
}

// Local returns a client of a handler in this process.
func Local(h http.Handler) *Client {
	return &Client{http: &http.Client{Transport: localTransport{h}}, base: "http://local"}
}

type localTransport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper. The answer is read while the handler
// writes it.
func (t localTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RemoteAddr = LocalPeer(uint32(os.Getuid()), os.Getpid()).String()
	body, w := io.Pipe()
	a := &answer{header: http.Header{}, body: w, begun: make(chan struct{})}
	go func() {
		defer cancel()
		defer w.Close() //nolint:errcheck // it has no error
		t.h.ServeHTTP(a, r)
		a.WriteHeader(http.StatusOK)
	}()
	<-a.begun
	return &http.Response{
		Status:     http.StatusText(a.status),
		StatusCode: a.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  a.sent,
		Body:    body,
		Request: r,
	}, nil
}

// answer passes on what a handler writes.
type answer struct {
	header, sent http.Header
	status       int
	begun        chan struct{} // closed when status and sent stand
	body         *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	}
}

// with returns a path with a query.
func with(path string, query url.Values) string { return path + "?" + query.Encode() }

// do sends a request and decodes the answer. There is no time limit but
// ctx's: a check may take hours.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	resp, err := c.send(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		return refusal(resp, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("understand the answer: %w", err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, url string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the running process: %w", err)
	}
	return resp, nil
}

// refusal is the error that a server answered.
func refusal(resp *http.Response, body []byte) error {
	var e apierr.Body
	if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
		return fmt.Errorf("the server at %s answered %s, and not as the admin API does: see admin.listen for its address", resp.Request.URL.Host, resp.Status)
	}
	return &Error{resp.StatusCode, e.Error.Code, e.Error.Message}
}

// ask is do with a typed result.
func ask[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	var out T
	err := c.do(ctx, method, path, in, &out)
	return out, err
}

// Status returns what runs.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "GET", "/v1/status", nil)
}

// Whereis returns who holds the bytes of an object.
func (c *Client) Whereis(ctx context.Context, path string) (Whereis, error) {
	return ask[Whereis](ctx, c, "GET", with("/v1/whereis", url.Values{"path": {path}}), nil)
}

// Purge drops a path from the caches of the process.
func (c *Client) Purge(ctx context.Context, path string) (Purged, error) {
	return ask[Purged](ctx, c, "POST", "/v1/purge", PathRequest{path})
}

// Check walks everything.
func (c *Client) Check(ctx context.Context, q CheckRequest) (CheckReport, error) {
	return ask[CheckReport](ctx, c, "POST", "/v1/check", q)
}

// Users lists the users.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	return ask[[]User](ctx, c, "GET", "/v1/users", nil)
}

// AddUser adds a user; the result holds the secret.
func (c *Client) AddUser(ctx context.Context, q AddUser) (User, error) {
	return ask[User](ctx, c, "POST", "/v1/users", q)
}

// RemoveUser removes a user.
func (c *Client) RemoveUser(ctx context.Context, name string) error {
	_, err := ask[User](ctx, c, "DELETE", "/v1/users/"+url.PathEscape(name), nil)
	return err
}

// Rotate gives a user new keys; the first key of the result holds the secret.
func (c *Client) Rotate(ctx context.Context, name string, keep bool) (User, error) {
	return ask[User](ctx, c, "POST", "/v1/users/"+url.PathEscape(name)+"/rotate", Rotate{keep})
}

// RenameUser gives a user another name.
func (c *Client) RenameUser(ctx context.Context, name, to string) (User, error) {
	return ask[User](ctx, c, "POST", "/v1/users/"+url.PathEscape(name)+"/rename", RenameUser{to})
}

// AddKey gives a user a further key; the last key of the result holds the secret.
func (c *Client) AddKey(ctx context.Context, name string, q AddKey) (User, error) {
	return ask[User](ctx, c, "POST", "/v1/users/"+url.PathEscape(name)+"/keys", q)
}

// RemoveKey takes a key from a user.
func (c *Client) RemoveKey(ctx context.Context, name, key string) (User, error) {
	return ask[User](ctx, c, "DELETE", "/v1/users/"+url.PathEscape(name)+"/keys/"+url.PathEscape(key), nil)
}

// Buckets lists the buckets.
func (c *Client) Buckets(ctx context.Context) ([]Bucket, error) {
	return ask[[]Bucket](ctx, c, "GET", "/v1/buckets", nil)
}

// AddBucket makes a bucket.
func (c *Client) AddBucket(ctx context.Context, q AddBucket) (Bucket, error) {
	return ask[Bucket](ctx, c, "POST", "/v1/buckets", q)
}

// Bucket shows one bucket with its settings.
func (c *Client) Bucket(ctx context.Context, name string) (Bucket, error) {
	return ask[Bucket](ctx, c, "GET", "/v1/buckets/"+url.PathEscape(name), nil)
}

// SetBucket changes settings of a bucket.
func (c *Client) SetBucket(ctx context.Context, name string, q SetBucket) (Bucket, error) {
	return ask[Bucket](ctx, c, "PATCH", "/v1/buckets/"+url.PathEscape(name), q)
}

// RemoveBucket removes an empty bucket.
func (c *Client) RemoveBucket(ctx context.Context, name string) error {
	_, err := ask[Bucket](ctx, c, "DELETE", "/v1/buckets/"+url.PathEscape(name), nil)
	return err
}

// Usage counts what a bucket holds.
func (c *Client) Usage(ctx context.Context, name string) (Usage, error) {
	return ask[Usage](ctx, c, "GET", "/v1/buckets/"+url.PathEscape(name)+"/usage", nil)
}

// ListExports lists what NFS clients may mount.
func (c *Client) ListExports(ctx context.Context) ([]Export, error) {
	return ask[[]Export](ctx, c, "GET", "/v1/exports", nil)
}

// AddExport adds an export; the result holds the secret, if one was asked for, and
// Export.Pending.
func (c *Client) AddExport(ctx context.Context, q AddExport) (Export, error) {
	return ask[Export](ctx, c, "POST", "/v1/exports", q)
}

// RevokeExport takes an export back, from those who mounted it too.
func (c *Client) RevokeExport(ctx context.Context, id string) error {
	_, err := ask[Export](ctx, c, "DELETE", "/v1/exports/"+url.PathEscape(id), nil)
	return err
}

// Mount makes the process mount the namespace.
func (c *Client) Mount(ctx context.Context, m Mount) error {
	_, err := ask[Mount](ctx, c, "POST", "/v1/mounts", m)
	return err
}

// Umount ends a mount of the process, a busy one only if lazy.
func (c *Client) Umount(ctx context.Context, dir string, lazy bool) (Unmounted, error) {
	q := url.Values{"dir": {dir}, "lazy": {strconv.FormatBool(lazy)}}
	return ask[Unmounted](ctx, c, "DELETE", with("/v1/mounts", q), nil)
}

// ListLocks lists the locks of the process.
func (c *Client) ListLocks(ctx context.Context, f LockFilter) (LockList, error) {
	return ask[LockList](ctx, c, "GET", with("/v1/locks", url.Values{"path": {f.Path}, "client": {f.Client}}), nil)
}

// FreeLocks ends all locks of an NFS client.
func (c *Client) FreeLocks(ctx context.Context, q FreeLocks) (FreedLocks, error) {
	return ask[FreedLocks](ctx, c, "POST", "/v1/locks/free", q)
}

// Quarantine lists the damaged blobs.
func (c *Client) Quarantine(ctx context.Context) (Quarantine, error) {
	return ask[Quarantine](ctx, c, "GET", "/v1/quarantine", nil)
}

// ReleaseDamaged deletes damaged blobs that no file uses any more.
func (c *Client) ReleaseDamaged(ctx context.Context, q ReleaseDamaged) (ReleasedDamaged, error) {
	return ask[ReleasedDamaged](ctx, c, "POST", "/v1/quarantine/release", q)
}

// Stop makes the process drain and stop; it returns before that is done.
func (c *Client) Stop(ctx context.Context) error {
	var out struct {
		Stopping bool `json:"stopping"`
	}
	return c.do(ctx, "POST", "/v1/stop", nil, &out)
}
