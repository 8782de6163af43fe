package adversary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ogw/integration/testenv"
)

// person is a user of the server under attack; the zero value is a stranger,
// who signs nothing.
type person struct {
	name   string
	uid    int
	key    string
	secret string
	token  string // of a session, "" for a key of the user's own
}

// newPerson adds a user.
func newPerson(t *testing.T, s *testenv.Server, name string, flags ...string) person {
	t.Helper()
	var out struct {
		UID  int `json:"uid"`
		Keys []struct {
			ID     string `json:"id"`
			Secret string `json:"secret"`
		} `json:"keys"`
	}
	text := s.OGW(append([]string{"user", "add", "--json", name}, flags...)...)
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Keys) != 1 {
		t.Fatalf("user add: %v\n%s", err, text)
	}
	return person{name: name, uid: out.UID, key: out.Keys[0].ID, secret: out.Keys[0].Secret}
}

// s3Request makes a request for the S3 gateway, signed by p; headers are pairs.
func (p person) s3Request(t *testing.T, s *testenv.Server, method, target, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.S3+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if p.key == "" {
		return r
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	creds := aws.Credentials{AccessKeyID: p.key, SecretAccessKey: p.secret, SessionToken: p.token}
	err = v4.NewSigner().SignHTTP(r.Context(), creds, r, hash, "s3", "us-east-1", time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// s3 sends a request to the S3 gateway and returns status and body.
func (p person) s3(t *testing.T, s *testenv.Server, method, target, body string, headers ...string) (int, string) {
	t.Helper()
	return send(t, p.s3Request(t, s, method, target, body, headers...))
}

// rest sends a request to the REST gateway with p's basic credentials.
func (p person) rest(t *testing.T, s *testenv.Server, method, target, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.REST+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if p.key != "" {
		r.SetBasicAuth(p.key, p.secret)
	}
	return send(t, r)
}

func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return resp.StatusCode, string(bytes.TrimSpace(body))
}

// must is for what the victim and the attacker may do.
func must(t *testing.T, what string) func(status int, body string) string {
	t.Helper()
	return func(status int, body string) string {
		t.Helper()
		if status/100 != 2 {
			t.Fatalf("%s: %d %s", what, status, body)
		}
		return body
	}
}

// refused is for attacks: 403, or 404 for what must not even show.
func refused(t *testing.T, what string) func(status int, body string) {
	t.Helper()
	return func(status int, body string) {
		t.Helper()
		if status != http.StatusForbidden && status != http.StatusNotFound && status != http.StatusUnauthorized {
			t.Errorf("%s: %d %.200s", what, status, body)
		}
	}
}
