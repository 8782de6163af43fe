package adversary

import (
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// TestSourceIP: policies and the audit log go by the address that a trusted proxy reports,
// at S3, REST and IAM, and by nobody else's word.
func TestSourceIP(t *testing.T) {
	const office, elsewhere = "192.0.2.7", "198.51.100.7"
	fromOffice := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}}`
	for _, c := range []struct {
		name, proxies string
		header        string
		status        int
		from          string
	}{
		{"by a trusted proxy", `trusted_proxies = ["127.0.0.1"]`, office, 200, office},
		{"by a trusted proxy, after what a client said", `trusted_proxies = ["127.0.0.1"]`, elsewhere + ", " + office, 200, office},
		{"from elsewhere, by a trusted proxy", `trusted_proxies = ["127.0.0.1"]`, office + ", " + elsewhere, 403, elsewhere},
		{"by nobody trusted", "", office, 403, "127.0.0.1"},
		{"by another proxy", `trusted_proxies = ["127.0.0.2"]`, office, 403, "127.0.0.1"},
		{"by a trusted proxy that says nothing", `trusted_proxies = ["127.0.0.1"]`, "", 403, "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, testenv.ServerOptions{S3: c.proxies, REST: "users = true\n" + c.proxies})
			admin, bob := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "bob")
			must(t, "bucket")(admin.s3(t, s, "PUT", "/place", ""))
			must(t, "key")(admin.s3(t, s, "PUT", "/place/k", "bytes"))
			must(t, "policy")(admin.query(t, s, "iam", "PutUserPolicy", "UserName", "bob", "PolicyName", "p", "PolicyDocument", fromOffice))
			var headers []string
			if c.header != "" {
				headers = []string{"X-Forwarded-For", c.header}
			}
			if status, body := bob.s3(t, s, "GET", "/place/k", "", headers...); status != c.status {
				t.Errorf("S3: %d %s", status, body)
			}
			if status, body := bob.rest(t, s, "GET", "/place/k", "", headers...); status != c.status {
				t.Errorf("REST: %d %s", status, body)
			}
			// What is refused is in the audit log, by where it came from; so is a
			// change of the bucket's.
			status, body := bob.s3(t, s, "PUT", "/place?tagging", "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>", headers...)
			if want := map[int]int{200: 204, 403: 403}[c.status]; status != want {
				t.Errorf("tagging: %d %s", status, body)
			}
			audited(t, s, "bob's tagging from "+c.from, func(l auditLine) bool {
				return l.Operation == "PutBucketTagging" && l.User == "bob" && strings.HasPrefix(l.From, c.from)
			})
		})
	}
}
