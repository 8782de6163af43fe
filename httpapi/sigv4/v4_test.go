package sigv4

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The example credentials and requests of the Amazon S3 API reference.
const (
	docKey    = "AKIAIOSFODNN7EXAMPLE"
	docSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var docTime = time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)

func at(t time.Time) Config {
	return Config{Region: "us-east-1", Now: func() time.Time { return t }}
}

func request(method, url string, headers map[string]string) *http.Request {
	r := httptest.NewRequest(method, url, nil)
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	return r
}

func check(c Config, r *http.Request, secret string) (*Signature, error) {
	v := New(c)
	s, err := v.Parse(r, r.URL.Query(), "")
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("anonymous")
	}
	return s, v.Verify(s, secret)
}

func docAuth(headers, signature string) string {
	return "AWS4-HMAC-SHA256 Credential=" + docKey + "/20130524/us-east-1/s3/aws4_request,SignedHeaders=" + headers + ",Signature=" + signature
}

func docGet() *http.Request {
	return request("GET", "http://examplebucket.s3.amazonaws.com/test.txt", map[string]string{
		"Range": "bytes=0-9", "X-Amz-Content-Sha256": emptyHash, "X-Amz-Date": "20130524T000000Z",
		"Authorization": docAuth("host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
	})
}

func TestReferenceRequests(t *testing.T) {
	plain := func(url, sig string) *http.Request {
		return request("GET", url, map[string]string{
			"X-Amz-Content-Sha256": emptyHash, "X-Amz-Date": "20130524T000000Z",
			"Authorization": docAuth("host;x-amz-content-sha256;x-amz-date", sig),
		})
	}
	for name, r := range map[string]*http.Request{
		"get": docGet(),
		"put": request("PUT", "http://examplebucket.s3.amazonaws.com/test$file.text", map[string]string{
			"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "X-Amz-Date": "20130524T000000Z",
			"X-Amz-Content-Sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			"Authorization": docAuth("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
				"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
		}),
		"lifecycle": plain("http://examplebucket.s3.amazonaws.com/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
		"list":      plain("http://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
		"presigned": request("GET", docPresigned, nil),
	} {
		if _, err := check(at(docTime), r, docSecret); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Method = "DELETE"
		if _, err := check(at(docTime), r, docSecret); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s with another method: %v", name, err)
		}
	}
}

const docPresigned = "http://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256" +
	"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z" +
	"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"

func TestHeaderErrors(t *testing.T) {
	auth := docGet().Header.Get("Authorization")
	for name, c := range map[string]struct {
		change func(*http.Request)
		now    time.Time
		want   error
	}{
		"16 minutes late":  {nil, docTime.Add(16 * time.Minute), ErrSkewed},
		"16 minutes early": {nil, docTime.Add(-16 * time.Minute), ErrSkewed},
		"14 minutes late":  {nil, docTime.Add(14 * time.Minute), nil},
		"14 minutes early": {nil, docTime.Add(-14 * time.Minute), nil},
		"no date":          {func(r *http.Request) { r.Header.Del("X-Amz-Date") }, docTime, ErrNoDate},
		"bad date":         {func(r *http.Request) { r.Header.Set("X-Amz-Date", "yesterday") }, docTime, ErrNoDate},
		"no sha256":        {func(r *http.Request) { r.Header.Del("X-Amz-Content-Sha256") }, docTime, ErrMissingSHA256},
		"bad sha256":       {func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "abc") }, docTime, ErrBadSHA256},
		"ecdsa stream": {func(r *http.Request) {
			r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")
		}, docTime, ErrUnsupportedStream},
		"other range":        {func(r *http.Request) { r.Header.Set("Range", "bytes=0-99") }, docTime, ErrMismatch},
		"other host":         {func(r *http.Request) { r.Host = "other.s3.amazonaws.com" }, docTime, ErrMismatch},
		"other path":         {func(r *http.Request) { r.URL.Path = "/other" }, docTime, ErrMismatch},
		"query added":        {func(r *http.Request) { r.URL.RawQuery = "acl" }, docTime, ErrMismatch},
		"unsigned x-amz":     {func(r *http.Request) { r.Header.Set("X-Amz-Acl", "public-read") }, docTime, ErrUnsignedHeader},
		"unsigned token":     {func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "t") }, docTime, ErrUnsignedHeader},
		"token in the query": {func(r *http.Request) { r.URL.RawQuery = "X-Amz-Security-Token=t" }, docTime, ErrSessionToken},
		"token alone": {func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("X-Amz-Security-Token", "t")
		}, docTime, ErrSessionToken},
		"both mechanisms":    {func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=00" }, docTime, ErrManyAuth},
		"basic":              {func(r *http.Request) { r.Header.Set("Authorization", "Basic eDp5") }, docTime, ErrUnknownAuth},
		"version 2 off":      {func(r *http.Request) { r.Header.Set("Authorization", "AWS key:c2ln") }, docTime, ErrUnsupportedAuth},
		"no signature":       {func(r *http.Request) { r.Header.Set("Authorization", auth[:strings.Index(auth, ",Sig")]) }, docTime, ErrMalformedHeader},
		"no components":      {func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256") }, docTime, ErrMalformedHeader},
		"unknown component":  {func(r *http.Request) { r.Header.Set("Authorization", auth+",Foo=bar") }, docTime, ErrMalformedHeader},
		"short signature":    {func(r *http.Request) { r.Header.Set("Authorization", auth[:len(auth)-2]) }, docTime, ErrMismatch},
		"host not signed":    {replaceAuth("=host;range", "=range"), docTime, ErrMalformedHeader},
		"other region":       {replaceAuth("us-east-1", "eu-west-1"), docTime, ErrMalformedHeader},
		"other service":      {replaceAuth("/s3/", "/iam/"), docTime, ErrMalformedHeader},
		"other terminator":   {replaceAuth("aws4_request", "aws5_request"), docTime, ErrMalformedHeader},
		"other scope date":   {replaceAuth("20130524", "20130523"), docTime, ErrMalformedHeader},
		"broken scope date":  {replaceAuth("20130524", "today"), docTime, ErrMalformedHeader},
		"short credential":   {replaceAuth("/s3/aws4_request", ""), docTime, ErrMalformedHeader},
		"empty access key":   {replaceAuth(docKey, ""), docTime, ErrMalformedHeader},
		"too many headers":   {replaceAuth("=host;", "=host;"+strings.Repeat("a;", 100)), docTime, ErrMalformedHeader},
		"header not present": {replaceAuth("=host;", "=content-type;host;"), docTime, ErrMismatch},
	} {
		r := docGet()
		if c.change != nil {
			c.change(r)
		}
		if _, err := check(at(c.now), r, docSecret); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := check(at(docTime), docGet(), "other secret"); !errors.Is(err, ErrMismatch) {
		t.Errorf("other secret: %v", err)
	}
	var re *Error
	r := docGet()
	replaceAuth("us-east-1", "eu-west-1")(r)
	if _, err := check(at(docTime), r, docSecret); !errors.As(err, &re) || re.Kind != ErrMalformedHeader ||
		re.Message != "The authorization header is malformed; the region 'eu-west-1' is wrong; expecting 'us-east-1'" || re.Details[0] != (Detail{"Region", "us-east-1"}) {
		t.Errorf("region: %v", err)
	}
}

func replaceAuth(from, to string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), from, to, 1))
	}
}

func TestPresignedErrors(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		now      time.Time
		want     error
	}{
		"last second":     {"", "", docTime.Add(24 * time.Hour), nil},
		"expired":         {"", "", docTime.Add(24*time.Hour + time.Second), ErrExpired},
		"future":          {"", "", docTime.Add(-16 * time.Minute), ErrNotYetValid},
		"zero expiry":     {"Expires=86400", "Expires=0", docTime, ErrExpired},
		"eight days":      {"Expires=86400", "Expires=691200", docTime, ErrMalformedQuery},
		"negative":        {"Expires=86400", "Expires=-1", docTime, ErrMalformedQuery},
		"no expiry":       {"&X-Amz-Expires=86400", "", docTime, ErrMalformedQuery},
		"longer expiry":   {"Expires=86400", "Expires=86401", docTime, ErrMismatch},
		"two signatures":  {"X-Amz-Signature=", "X-Amz-Signature=00&X-Amz-Signature=", docTime, ErrMalformedQuery},
		"algorithm":       {"HMAC-SHA256", "HMAC-SHA512", docTime, ErrMalformedQuery},
		"bad date":        {"Date=20130524T000000Z", "Date=2013", docTime, ErrMalformedQuery},
		"scope date":      {"%2F20130524", "%2F20130523", docTime, ErrMalformedQuery},
		"region":          {"us-east-1", "mars", docTime, ErrMalformedQuery},
		"parameter added": {"X-Amz-Algorithm", "versionId=1&X-Amz-Algorithm", docTime, ErrMismatch},
		"changed mac":     {"Signature=ae", "Signature=af", docTime, ErrMismatch},
	} {
		r := request("GET", strings.Replace(docPresigned, c.from, c.to, 1), nil)
		if _, err := check(at(c.now), r, docSecret); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestKeyRotation(t *testing.T) {
	v := New(at(docTime))
	for _, c := range []struct {
		secret string
		want   error
	}{{docSecret, nil}, {"rotated", ErrMismatch}, {docSecret, nil}} {
		r := docGet()
		s, err := v.Parse(r, r.URL.Query(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(s, c.secret); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.secret, err)
		}
	}
	for i := range maxCachedKeys + 10 {
		v.keys.put(keyID{"k", time.Unix(int64(i)*86400, 0).Format(dateFormat), "r"}, "s", nil)
	}
	if n := len(v.keys.keys); n > maxCachedKeys {
		t.Errorf("%d cached keys", n)
	}
}

func TestCanonicalQueryOrder(t *testing.T) {
	r := httptest.NewRequest("GET", "/?a-b=1&a=2&a=1&A=+x%2B&b&c=%7E%20", nil)
	if got, want := string(appendQuery(nil, r.URL.Query())), "A=%20x%2B&a=1&a=2&a-b=1&b=&c=~%20"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWhiteSpace: what the SDK signs is what counts here, white space that is not ASCII's
// included, and within a value none passes for another.
func TestWhiteSpace(t *testing.T) {
	const name = "X-Amz-Meta-A"
	signed := func(value string) *http.Request {
		r := request("PUT", "http://examplebucket.s3.amazonaws.com/k", map[string]string{name: value, "X-Amz-Content-Sha256": emptyHash})
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: docKey, SecretAccessKey: docSecret}, r, emptyHash, s3, "us-east-1", docTime); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, space := range []string{" ", "\u3000", "\u00a0", "\u2003", "\u0085"} {
		for form, v2 := range map[string]string{
			"ab": "ab", "a b": "a b", "_ab": "ab", "ab_": "ab", "_a b_": "a b", // at the ends
			"a_b": "a_b", "a b_c": "a b_c", "a_ b": "a_ b", "a  b_c": "a b_c",
		} {
			value := strings.ReplaceAll(form, "_", space)
			r := signed(value)
			if _, err := check(at(docTime), r, docSecret); err != nil {
				t.Errorf("%q: %v", value, err)
			}
			if want := strings.ReplaceAll(v2, "_", space); space != " " && signedText(name, value) != want {
				t.Errorf("%q: Version 2 signs %q, want %q", value, signedText(name, value), want)
			}
			r.Header.Set(name, strings.ReplaceAll(form, "_", " "))
			if _, err := check(at(docTime), r, docSecret); errors.Is(err, ErrMismatch) != (space != " " && strings.Contains(v2, "_")) {
				t.Errorf("%q for %q: %v", r.Header.Get(name), value, err)
			}
		}
	}
}

func TestV2(t *testing.T) {
	mk := func(method, url, date, sig string, more map[string]string) *http.Request {
		r := request(method, "http://johnsmith.s3.amazonaws.com"+url, more)
		r.Header.Set("Date", date)
		r.Header.Set("Authorization", "AWS "+docKey+":"+sig)
		return r
	}
	now := time.Date(2007, 3, 27, 19, 40, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		r   *http.Request
		now time.Time
	}{
		"get":  {mk("GET", "/photos/puppy.jpg", "Tue, 27 Mar 2007 19:36:42 +0000", "bWq2s1WEIj+Ydj0vQ697zp+IXMU=", nil), now},
		"list": {mk("GET", "/?prefix=photos&max-keys=50&marker=puppy", "Tue, 27 Mar 2007 19:42:41 +0000", "htDYFYduRNen8P9ZfE/s9SuKy0U=", nil), now},
		"acl":  {mk("GET", "/?acl", "Tue, 27 Mar 2007 19:44:46 +0000", "c2WLPFtWHVgbEmeEG93a4cG37dM=", nil), now},
		"put": {mk("PUT", "/photos/puppy.jpg", "Tue, 27 Mar 2007 21:15:45 +0000", "MyyxeRY7whkBe+bq8fHCL/2kKUg=",
			map[string]string{"Content-Type": "image/jpeg"}), now.Add(100 * time.Minute)},
		"presigned": {request("GET", "http://johnsmith.s3.amazonaws.com/photos/puppy.jpg?AWSAccessKeyId="+docKey+
			"&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620", nil), now},
	} {
		cfg := Config{V2: V2All, Now: func() time.Time { return c.now }}
		v := New(cfg)
		s, err := v.Parse(c.r, c.r.URL.Query(), "johnsmith")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := v.Verify(s, docSecret); err != nil {
			t.Errorf("%s: %v\n%q", name, err, s.stringToSignV2())
		}
		if err := v.Verify(s, "other"); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s with another secret: %v", name, err)
		}
		cfg.V2 = V2URLs
		if _, err := New(cfg).Parse(c.r, c.r.URL.Query(), "johnsmith"); errors.Is(err, ErrUnsupportedAuth) != (name != "presigned") {
			t.Errorf("%s, by default: %v", name, err)
		}
		cfg.V2 = V2None
		if _, err := New(cfg).Parse(c.r, c.r.URL.Query(), "johnsmith"); !errors.Is(err, ErrUnsupportedAuth) {
			t.Errorf("%s, switched off: %v", name, err)
		}
		cfg = Config{V2: V2All, Now: func() time.Time { return now.AddDate(0, 1, 0) }}
		if _, err := New(cfg).Parse(c.r, c.r.URL.Query(), "johnsmith"); !errors.Is(err, ErrSkewed) && !errors.Is(err, ErrExpired) {
			t.Errorf("%s, a month later: %v", name, err)
		}
	}
}

func TestPost(t *testing.T) {
	v := New(Config{Region: "us-east-1", V2: V2All, Now: func() time.Time { return docTime }})
	policy := "eyJleHBpcmF0aW9uIjogIjIwMTMtMDUtMjVUMDA6MDA6MDBaIn0="
	form := map[string]string{
		"policy": policy, "x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-date": "20130524T000000Z",
		"x-amz-credential": docKey + "/20130524/us-east-1/s3/aws4_request",
		"x-amz-signature":  hexOf(hmacSHA256(newSigningKey(docSecret, "20130524", "us-east-1", s3).key, []byte(policy))),
	}
	with := func(k, val string) func(string) string {
		return func(name string) string {
			if name == k {
				return val
			}
			return form[name]
		}
	}
	verify := func(f func(string) string) error {
		s, err := v.ParsePost(f)
		if err != nil {
			return err
		}
		return v.Verify(s, docSecret)
	}
	for name, c := range map[string]struct {
		f    func(string) string
		want error
	}{
		"good":         {with("", ""), nil},
		"other policy": {with("policy", policy[:8]), ErrMismatch},
		"no policy":    {with("policy", ""), ErrMalformedPost},
		"no mac":       {with("x-amz-signature", ""), ErrMalformedPost},
		"algorithm":    {with("x-amz-algorithm", "x"), ErrMalformedPost},
		"date":         {with("x-amz-date", "20130525T000000Z"), ErrMalformedPost},
		"region":       {with("x-amz-credential", docKey+"/20130524/x/s3/aws4_request"), ErrMalformedPost},
	} {
		if err := verify(c.f); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := v.ParsePost(with("x-amz-security-token", "x")); err != nil || s.Token != "x" {
		t.Errorf("token: %+v, %v", s, err)
	}
	if _, err := v.ParsePost(func(name string) string { return map[string]string{"x-amz-security-token": "x"}[name] }); !errors.Is(err, ErrSessionToken) {
		t.Errorf("token alone: %v", err)
	}
	if s, err := v.ParsePost(func(string) string { return "" }); s != nil || err != nil {
		t.Errorf("anonymous: %v %v", s, err)
	}
	v2 := map[string]string{"policy": policy, "awsaccesskeyid": docKey, "signature": base64Of(macV2(docSecret, policy))}
	if err := verify(func(n string) string { return v2[n] }); err != nil {
		t.Errorf("version 2: %v", err)
	}
	v2["policy"] += "x"
	if err := verify(func(n string) string { return v2[n] }); !errors.Is(err, ErrMismatch) {
		t.Errorf("version 2, other policy: %v", err)
	}
}
