package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// beatEvery is how often the holder of a lock shows that it is alive;
	// lockStale is how long it may be silent.
	beatEvery = 20 * time.Second
	lockStale = 3 * time.Minute
	// s3Tries is how often a request is tried, with growing pauses.
	s3Tries = 6
)

// S3Config is where a bucket is. Credentials come from the environment and
// the shared file, as the AWS tools have them.
type S3Config struct {
	Endpoint string // URL; "": AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS itself
	Region   string // "": AWS_REGION, AWS_DEFAULT_REGION, or asked for
}

// S3 is a bucket, or what lies below a prefix of it.
type S3 struct {
	client         *minio.Client
	bucket, prefix string // the prefix ends in a slash, or is ""
	// beat and stale are beatEvery and lockStale, except in tests.
	beat, stale time.Duration
}

// NewS3 returns the storage at s3://BUCKET/PREFIX.
func NewS3(location string, c S3Config, getenv func(string) string) (*S3, error) {
	rest, ok := strings.CutPrefix(location, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return nil, fmt.Errorf("%s is not s3://BUCKET or s3://BUCKET/PREFIX", location)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	endpoint := cmp.Or(c.Endpoint, getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the endpoint %q is not a URL such as https://s3.example.com", endpoint)
	}
	transport, err := s3Transport(u.Scheme == "https", getenv("AWS_CA_BUNDLE"))
	if err != nil {
		return nil, err
	}
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", Transport: transport, MaxRetries: s3Tries,
		Region: cmp.Or(c.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: transport, Timeout: 5 * time.Second}},
		}),
	})
	return &S3{client, bucket, prefix, beatEvery, lockStale}, err
}

func s3Transport(secure bool, ca string) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil || ca == "" || !secure {
		return t, err
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %s holds no certificate", ca)
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	return t, nil
}

// String implements Storage.
func (s *S3) String() string { return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/") }

// s3Error puts an answer into a class.
func s3Error(err error) error {
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return err
	}
	switch {
	case r.Code == minio.NoSuchBucket:
		return fmt.Errorf("bucket %s: there is no such bucket; make it first", r.BucketName)
	case r.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	case r.StatusCode == http.StatusPreconditionFailed, r.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w: %w", ErrExist, err)
	}
	return err
}

// Put implements Storage.
func (s *S3) Put(ctx context.Context, name string, data []byte, replace bool) error {
	o := minio.PutObjectOptions{}
	if !replace {
		o.SetMatchETagExcept("*")
	}
	_, err := s.put(ctx, name, data, o)
	return err
}

func (s *S3) put(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) (etag string, err error) {
	o.DisableMultipart = true
	o.ContentType = "application/octet-stream"
	info, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(data), int64(len(data)), o)
	if err = s3Error(err); err == nil {
		return info.ETag, nil
	}
	if errors.Is(err, ErrExist) && o.Header().Get("If-None-Match") == "*" {
		// A try before this one may have stored it, and its answer was lost.
		if b, info, e := s.get(ctx, name, 0, -1); e == nil && bytes.Equal(b, data) {
			return info.ETag, nil
		}
	}
	return "", fmt.Errorf("write %s/%s: %w", s, name, err)
}

// Get implements Storage.
func (s *S3) Get(ctx context.Context, name string, off, n int64) ([]byte, error) {
	b, _, err := s.get(ctx, name, off, n)
	return b, err
}

// readAll reads what should have size bytes into one piece of memory, which io.ReadAll
// would copy each time that it grows.
func readAll(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(size, 0), cachedBytes)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func (s *S3) get(ctx context.Context, name string, off, n int64) (b []byte, info minio.ObjectInfo, err error) {
	o := minio.GetObjectOptions{}
	if n > 0 {
		err = o.SetRange(off, off+n-1)
	} else if off > 0 {
		err = o.SetRange(off, 0)
	}
	if err != nil {
		return nil, info, err
	}
	r, info, _, err := (&minio.Core{Client: s.client}).GetObject(ctx, s.bucket, s.prefix+name, o)
	if err == nil {
		defer r.Close() //nolint:errcheck // it was read
		b, err = readAll(r, info.Size)
	}
	if err != nil {
		err = fmt.Errorf("read %s/%s: %w", s, name, s3Error(err))
	}
	return b, info, err
}

// List implements Storage.
func (s *S3) List(ctx context.Context, prefix string, fn func(Object) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", s, s3Error(o.Err))
		}
		name := strings.TrimPrefix(o.Key, s.prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue // somebody made it as a folder
		}
		if err := fn(Object{Name: name, Size: o.Size}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Delete implements Storage.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := s3Error(s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// Lock implements Storage. The lock is an object that only conditional writes
// make and change. Its holder writes it anew every beatEvery; one that is silent
// for lockStale by the clock of the storage, or whose process is seen to have
// ended, has lost it.
func (s *S3) Lock(ctx context.Context, who Holder) (context.Context, Lock, error) {
	etag, err := s.takeLock(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	l := &s3Lock{s: s, ended: make(chan struct{}), who: who, etag: etag, last: time.Now()}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	go l.keep()
	return l.ctx, l, nil
}

// s3Lock is a lock that is held.
type s3Lock struct {
	s      *S3
	ctx    context.Context // ends with it
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when keep has ended

	mu   sync.Mutex
	who  Holder
	etag string
	last time.Time // when it was written
	lost error
}

// keep renews it until it ends.
func (l *s3Lock) keep() {
	defer close(l.ended)
	tick := time.NewTicker(l.s.beat)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		if errors.Is(l.Renew(l.ctx), ErrLockLost) {
			return
		}
	}
}

// Renew implements Lock.
func (l *s3Lock) Renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	err := l.renew(ctx)
	switch {
	case err == nil:
		l.last = time.Now()
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrLockLost):
		l.lost = err
	case time.Since(l.last) > l.s.stale/2: // before it is
		l.lost = fmt.Errorf("%w: %w", ErrLockLost, err)
	default:
		return err
	}
	l.cancel(l.lost)
	return l.lost
}

// renew writes the lock anew. Where it is not as it was written last, that may be the
// holder's own: a write whose answer was lost.
func (l *s3Lock) renew(ctx context.Context) error {
	l.who.Beat++
	for try := 1; ; try++ {
		etag, err := l.s.writeLock(ctx, l.who, l.etag)
		if err == nil {
			l.etag = etag
			return nil
		}
		if !errors.Is(err, ErrExist) && !errors.Is(err, ErrNotExist) {
			return err
		}
		b, info, e := l.s.get(ctx, lockName, 0, -1)
		if e != nil && !errors.Is(e, ErrNotExist) {
			return e
		}
		beat, ours := l.who.wrote(b)
		switch {
		case !ours:
			return fmt.Errorf("%w: %w", ErrLockLost, err)
		case beat == l.who.Beat: // this very write
			l.etag = info.ETag
			return nil
		case try == maxRenewals:
			return err
		}
		l.etag = info.ETag
	}
}

// maxRenewals bounds the writes of one beat, each of which the storage has refused.
const maxRenewals = 3

// Release implements Lock. It asks first: a lock that was lost is another's.
func (l *s3Lock) Release() {
	l.cancel(nil)
	<-l.ended
	ctx := context.WithoutCancel(l.ctx)
	if l.Renew(ctx) == nil {
		_ = l.s.Delete(ctx, lockName) // or it gets stale
	}
}

func (s *S3) writeLock(ctx context.Context, who Holder, etag string) (string, error) {
	b, err := json.Marshal(who)
	if err != nil {
		return "", err
	}
	o := minio.PutObjectOptions{}
	if etag == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(etag)
	}
	return s.put(ctx, lockName, b, o)
}

func (s *S3) takeLock(ctx context.Context, who Holder) (etag string, err error) {
	etag, err = s.writeLock(ctx, who, "")
	if !errors.Is(err, ErrExist) {
		return etag, err
	}
	b, info, err := s.get(ctx, lockName, 0, -1)
	if err != nil {
		return "", err
	}
	var other Holder
	if err := json.Unmarshal(b, &other); err != nil {
		return "", fmt.Errorf("%w: its lock %s/%s is not one", ErrDamaged, s, lockName)
	}
	if !other.ended() {
		now, err := s.clock(ctx)
		if err != nil {
			return "", err
		}
		if now.Sub(info.LastModified) < s.stale {
			return "", other.err()
		}
	}
	etag, err = s.writeLock(ctx, who, info.ETag)
	if errors.Is(err, ErrExist) || errors.Is(err, ErrNotExist) {
		return "", fmt.Errorf("%w: another process took it at this moment", ErrLocked)
	}
	return etag, err
}

// clock tells the time of the storage.
func (s *S3) clock(ctx context.Context) (time.Time, error) {
	const name = newDir + "/clock"
	if err := s.Put(ctx, name, []byte(time.Now().String()), true); err != nil {
		return time.Time{}, err
	}
	_, info, err := s.get(ctx, name, 0, -1)
	if err != nil {
		return time.Time{}, err
	}
	return info.LastModified, s.Delete(ctx, name)
}
