package s3

import (
	"net/http"
	"testing"
)

// Who has to pay for requests must say so, and strangers cannot, whatever ACLs and
// policies give.
func TestRequesterPays(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "pays")
	pays := map[string]string{"X-Amz-Request-Payer": "requester"}
	doc := func(payer string) []byte {
		return []byte("<RequestPaymentConfiguration><Payer>" + payer + "</Payer></RequestPaymentConfiguration>")
	}
	policy := `{"Statement":{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:PutObject","s3:ListBucket"],"Resource":["arn:aws:s3:::pays","arn:aws:s3:::pays/*"]}}`
	kind, form := form([][2]string{{"key", "form"}}, "x")
	for _, c := range []struct {
		who, method, target string
		body                []byte
		header              map[string]string
		status              int
		says                string
	}{
		{"alice", "PUT", "/pays/k", []byte("text"), nil, 200, ""},
		{"alice", "PUT", "/pays?policy", []byte(policy), nil, 204, ""},
		{"bob", "PUT", "/pays?requestPayment", doc("Requester"), nil, 403, "AccessDenied"},
		{"alice", "PUT", "/pays?requestPayment", doc("Nobody"), nil, 400, "MalformedXML"},
		{"", "GET", "/pays/k", nil, nil, 200, "text"},
		{"alice", "PUT", "/pays?requestPayment", doc("Requester"), nil, 200, ""},
		{"alice", "GET", "/pays?requestPayment", nil, nil, 200, "<Payer>Requester</Payer>"},
		{"", "GET", "/pays/k", nil, nil, 403, "AccessDenied"},
		{"", "GET", "/pays/k", nil, pays, 403, "AccessDenied"},
		{"", "POST", "/pays", form, map[string]string{"Content-Type": kind}, 403, "AccessDenied"},
		{"bob", "GET", "/pays/k", nil, nil, 403, "AccessDenied"},
		{"bob", "GET", "/pays/k", nil, map[string]string{"X-Amz-Request-Payer": "owner"}, 403, "AccessDenied"},
		{"bob", "GET", "/pays/k", nil, pays, 200, "text"},
		{"bob", "GET", "/pays?list-type=2", nil, nil, 403, "AccessDenied"},
		{"bob", "GET", "/pays?list-type=2", nil, pays, 200, "<Key>k</Key>"},
		{"bob", "PUT", "/pays/bobs", []byte("v"), nil, 403, "AccessDenied"},
		{"bob", "PUT", "/pays/bobs", []byte("v"), pays, 200, ""},
		{"bob", "PUT", "/pays/copy", nil, map[string]string{"X-Amz-Copy-Source": "/pays/k"}, 403, "AccessDenied"},
		{"alice", "GET", "/pays/k", nil, nil, 200, "text"},
		{"root", "GET", "/pays/k", nil, nil, 200, "text"},
		// It stays while other things that rights go by come and go.
		{"alice", "PUT", "/pays?ownershipControls", ownershipDoc("BucketOwnerPreferred"), nil, 200, ""},
		{"alice", "DELETE", "/pays?ownershipControls", nil, nil, 204, ""},
		{"alice", "DELETE", "/pays?policy", nil, nil, 204, ""},
		{"alice", "PUT", "/pays/k?acl", nil, map[string]string{"X-Amz-Acl": "public-read"}, 200, ""},
		{"", "GET", "/pays/k", nil, nil, 403, "AccessDenied"},
		{"bob", "GET", "/pays/k", nil, nil, 403, "AccessDenied"},
		{"bob", "GET", "/pays/k", nil, pays, 200, "text"},
		{"alice", "PUT", "/pays?requestPayment", doc("BucketOwner"), nil, 200, ""},
		{"alice", "GET", "/pays?requestPayment", nil, nil, 200, "<Payer>BucketOwner</Payer>"},
		{"", "GET", "/pays/k", nil, nil, 200, "text"},
	} {
		d.wantRaw(c.who, c.method, c.target, c.body, c.header, c.status, c.says)
	}
	d.wantRaw("alice", "PUT", "/pays?requestPayment", doc("Requester"), nil, 200, "")
	for who, charged := range map[string]string{"alice": "", "bob": "requester"} {
		if res, _ := d.wantRaw(who, "HEAD", "/pays/k", nil, pays, 200, ""); res.Header.Get("X-Amz-Request-Charged") != charged {
			t.Errorf("%s: %v", who, res.Header)
		}
	}
	// A URL that is signed says it in its query.
	r := d.request(http.MethodGet, d.presign("bob", http.MethodGet, "/pays/k?x-amz-request-payer=requester"), nil, nil)
	if res, body := d.do(r); res.StatusCode != 200 || body != "text" || res.Header.Get("X-Amz-Request-Charged") != "requester" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}
