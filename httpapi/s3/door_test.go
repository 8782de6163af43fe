package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/users"
)

var bg = context.Background()

// door is the real S3 door over a real namespace, behind a real listener.
type door struct {
	t   testing.TB
	fs  *vfs.FS
	srv *Server
	url string
	tls string // the same door over HTTPS, with a certificate of nobody
}

// secretOf is the secret of each test user: root is an administrator, alice
// and bob are not.
func secretOf(user string) string { return "secret-of-" + user + "-0123456789" }

// userID returns the ID of who has a name now.
func (d *door) userID(name string) string {
	u, err := d.fs.Users().ByName(bg, name)
	if err != nil {
		d.t.Error(err)
	}
	return string(u.ID)
}

// account is the number by which Amazon's clients name a user.
func (d *door) account(name string) string {
	u, err := d.fs.Users().ByName(bg, name)
	if err != nil {
		d.t.Error(err)
	}
	return users.AccountNumber(u.UID)
}

func openDoor(t testing.TB, c Config) *door {
	t.Helper()
	return openDoorOn(t, c, mem.Options{})
}

func openDoorOn(t testing.TB, c Config, o mem.Options) *door {
	t.Helper()
	clu := mem.New(o)
	fs, err := vfs.Open(bg, clu, vfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"root", "alice", "bob"} {
		u := users.User{Name: name, UID: uint32(1000 + i), GID: 100, Admin: name == "root",
			Keys: []users.AccessKey{{ID: "KEY" + name, Secret: secretOf(name)}}}
		if err := fs.Users().Add(bg, u); err != nil {
			t.Fatal(err)
		}
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	d := &door{t: t, fs: fs}
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	d.srv = New(fs, c)
	web := httptest.NewServer(d.srv)
	tls := httptest.NewTLSServer(d.srv)
	d.url, d.tls = web.URL, tls.URL
	t.Cleanup(func() {
		web.Close()
		tls.Close()
		if d.srv.slots.InUse() != 0 {
			t.Errorf("%d requests never ended", d.srv.slots.InUse())
		}
		if err := fs.Close(bg); err != nil {
			t.Error(err)
		}
		clu.Close()
	})
	return d
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// client returns the AWS SDK's client as user; "" is anonymous.
func (d *door) client(user string, options ...func(*awss3.Options)) *awss3.Client {
	o := awss3.Options{Region: "us-east-1", BaseEndpoint: &d.url, UsePathStyle: true, RetryMaxAttempts: 1}
	if user != "" {
		o.Credentials = credentials.NewStaticCredentialsProvider("KEY"+user, secretOf(user), "")
	} else {
		o.Credentials = aws.AnonymousCredentials{}
	}
	return awss3.New(o, options...)
}

// bucket makes a bucket as user.
func (d *door) bucket(user, name string) *awss3.Client {
	d.t.Helper()
	c := d.client(user)
	if _, err := c.CreateBucket(bg, &awss3.CreateBucketInput{Bucket: &name}); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// raw sends one request, signed as user ("" is not signed) by the SDK's
// signer. The target is sent as it is.
func (d *door) raw(user, method, target string, body []byte, header map[string]string) (*http.Response, string) {
	d.t.Helper()
	r := d.request(method, target, body, header)
	if user != "" {
		d.sign(r, user, body, time.Now())
	}
	return d.do(r)
}

func (d *door) request(method, target string, body []byte, header map[string]string) *http.Request {
	d.t.Helper()
	r, err := http.NewRequest(method, d.url+target, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	return r
}

// signIn signs a request without a body for another region.
func (d *door) signIn(region string, r *http.Request, user string) {
	d.t.Helper()
	d.signFor(region, r, user, nil, time.Now())
}

func (d *door) sign(r *http.Request, user string, body []byte, now time.Time) {
	d.t.Helper()
	d.signFor("us-east-1", r, user, body, now)
}

func (d *door) signFor(region string, r *http.Request, user string, body []byte, now time.Time) {
	d.t.Helper()
	hash := r.Header.Get("X-Amz-Content-Sha256")
	if hash == "" {
		sum := sha256.Sum256(body)
		hash = hex.EncodeToString(sum[:])
		r.Header.Set("X-Amz-Content-Sha256", hash)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	creds := aws.Credentials{AccessKeyID: "KEY" + user, SecretAccessKey: secretOf(user)}
	if err := signer.SignHTTP(bg, creds, r, hash, "s3", region, now); err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) do(r *http.Request) (*http.Response, string) {
	d.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res, string(b)
}

// wantRaw fails unless a raw request is answered by status and, in the body, text.
func (d *door) wantRaw(user, method, target string, body []byte, header map[string]string, status int, text string) (*http.Response, string) {
	d.t.Helper()
	res, got := d.raw(user, method, target, body, header)
	if res.StatusCode != status || !strings.Contains(got, text) {
		d.t.Errorf("%s %s as %q: %d %s; want %d %s", method, target, user, res.StatusCode, got, status, text)
	}
	return res, got
}

// wantCode fails unless err is the S3 error code; "" means no error.
func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	var e smithy.APIError
	switch {
	case err == nil && code == "":
	case errors.As(err, &e) && e.ErrorCode() == code:
	default:
		t.Errorf("%s: error is %v, want %q", what, err, code)
	}
}

func put(t testing.TB, c *awss3.Client, bucket, key, body string) *awss3.PutObjectOutput {
	t.Helper()
	out, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		t.Fatalf("put %.50q: %v", key, err)
	}
	return out
}

func get(t testing.TB, c *awss3.Client, bucket, key string) string {
	t.Helper()
	out, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatalf("get %.50q: %v", key, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatalf("get %.50q: %v", key, err)
	}
	return string(b)
}
