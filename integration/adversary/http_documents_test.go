package adversary

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// documentConns is more than one user's share of the slots.
const documentConns = 512 + 64

// documentBudget is what all large documents of the server may take.
const documentBudget = 64 << 20

// heldDocument is a body of which the server gets all but the last byte.
type heldDocument struct{ method, target, body string }

// TestMemoryOfHeldDocuments: many requests at a time whose bodies are as long as they may
// be, with as many elements, and do not end.
func TestMemoryOfHeldDocuments(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/docs", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/docs/k", "x"))
	status, body := alice.s3(t, s, "POST", "/docs/big?uploads", "")
	id := uploadID(t, must(t, "upload")(status, body))
	parts := &strings.Builder{}
	for i := range 10_000 {
		fmt.Fprintf(parts, "<Part><PartNumber>%d</PartNumber><ETag>%032x</ETag><ChecksumSHA256>%044d</ChecksumSHA256>%s</Part>", i+1, i, i, strings.Repeat(" ", 260))
	}
	keys := strings.Repeat("<Object><Key>"+strings.Repeat("&#x41;", 1000)+"</Key></Object>", 999)
	grants := strings.Repeat(`<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="Group"><URI>u</URI></Grantee><Permission>READ</Permission></Grant>`, 199)
	for name, d := range map[string]heldDocument{
		"CompleteMultipartUpload": {"POST", "/docs/big?uploadId=" + id, "<CompleteMultipartUpload>" + parts.String() + "</CompleteMultipartUpload>"},
		"short parts":             {"POST", "/docs/big?uploadId=" + id, "<CompleteMultipartUpload>" + strings.Repeat("<Part/>", 9_000) + "</CompleteMultipartUpload>"},
		"more parts":              {"POST", "/docs/big?uploadId=" + id, "<CompleteMultipartUpload>" + strings.Repeat("<Part/>", 10_000) + "</CompleteMultipartUpload>"},
		"short keys":              {"POST", "/docs?delete", "<Delete>" + strings.Repeat("<Object/>", 1_000) + "</Delete>"},
		"DeleteObjects":           {"POST", "/docs?delete", "<Delete>" + keys + "</Delete>"},
		"CORS":                    {"PUT", "/docs?cors", "<CORSConfiguration><CORSRule>" + strings.Repeat("<ID/>", 64_000/5) + "</CORSRule></CORSConfiguration>"},
		"rules":                   {"PUT", "/docs?cors", "<CORSConfiguration>" + strings.Repeat("<CORSRule/>", 64_000/11) + "</CORSConfiguration>"},
		"headers":                 {"PUT", "/docs?cors", "<CORSConfiguration><CORSRule>" + strings.Repeat("<AllowedHeader/>", 64_000/16) + "</CORSRule></CORSConfiguration>"},
		"ACL":                     {"PUT", "/docs?acl", "<AccessControlPolicy><AccessControlList>" + grants + "</AccessControlList></AccessControlPolicy>"},
		"tags":                    {"PUT", "/docs/k?tagging", "<Tagging><TagSet>" + strings.Repeat("<Tag/>", 990) + strings.Repeat(" ", 9_000) + "</TagSet></Tagging>"},
		"policy":                  {"PUT", "/docs?policy", `{"Statement":[` + strings.Repeat("{},", 6_000) + `{}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var request bytes.Buffer
			if err := alice.s3Request(t, s, d.method, d.target, d.body).Write(&request); err != nil {
				t.Fatal(err)
			}
			b := request.Bytes()
			b = b[:len(b)-1]
			conns := make([]net.Conn, min(documentConns, 4*documentBudget/len(b)))
			bounded(t, s, func() {
				many(32, len(conns), func(i int) {
					if got := connect(s.S3, 1, "", attacker); len(got) == 1 {
						conns[i] = got[0]
						_ = got[0].SetDeadline(time.Now().Add(giveUp))
						_, _ = got[0].Write(b) // the server may end it
					}
				})
				time.Sleep(time.Second) // until all are decoded as far as they came
				refused(t, "another client is answered")(person{}.s3(t, s, "GET", "/docs/k", ""))
			})
			for _, c := range conns {
				if c != nil {
					c.Close()
				}
			}
		})
	}
}
