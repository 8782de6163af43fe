package adversary

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ogw/integration/testenv"
)

const everything = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`

// TestIAMEscalation: nobody comes to more by IAM than somebody with that right gave:
// neither with no right, nor with rights on oneself, nor with all of IAM against an
// administrator, nor by a chain of roles.
func TestIAMEscalation(t *testing.T) {
	s := newServer(t, restUsers)
	admin, alice, bob, carol := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "alice"), newPerson(t, s, "bob"), newPerson(t, s, "carol")
	alice.withBucket(t, s, "hers")
	newRole(t, s, admin, "reader")
	must(t, "group")(admin.query(t, s, "iam", "CreateGroup", "GroupName", "strong"))
	must(t, "policy")(admin.query(t, s, "iam", "PutGroupPolicy", "GroupName", "strong", "PolicyName", "p", "PolicyDocument", everything))
	managed := element(must(t, "policy")(admin.query(t, s, "iam", "CreatePolicy", "PolicyName", "strong", "PolicyDocument", everything)), "Arn")
	session := bob.inRole(t, s, "reader")

	type try struct {
		action     string
		parameters []string
	}
	upon := func(name string) []try {
		return []try{
			{"PutUserPolicy", []string{"UserName", name, "PolicyName", "mine", "PolicyDocument", everything}},
			{"AttachUserPolicy", []string{"UserName", name, "PolicyArn", managed}},
			{"AddUserToGroup", []string{"UserName", name, "GroupName", "strong"}},
			{"CreateAccessKey", []string{"UserName", name}},
			{"UpdateUser", []string{"UserName", name, "NewUserName", "mallory"}},
			{"DeleteUser", []string{"UserName", name}},
		}
	}
	refuses := func(what string, p person, list []try) {
		t.Helper()
		for _, x := range list {
			refused(t, fmt.Sprintf("%s %q by %s", x.action, x.parameters, what))(p.query(t, s, "iam", x.action, x.parameters...))
		}
	}
	roles := []try{
		{"UpdateAssumeRolePolicy", []string{"RoleName", "reader", "PolicyDocument", everybodyTrusted}},
		{"PutRolePolicy", []string{"RoleName", "reader", "PolicyName", "p", "PolicyDocument", everything}},
		{"AttachRolePolicy", []string{"RoleName", "reader", "PolicyArn", managed}},
		{"CreatePolicyVersion", []string{"PolicyArn", managed, "PolicyDocument", everything, "SetAsDefault", "true"}},
	}
	for _, name := range []string{"bob", "alice", "root"} {
		refuses("bob", bob, upon(name))
		refuses("a session", session, upon(name))
	}
	refuses("bob", bob, roles)
	refuses("a session", session, roles)
	bob.robs(t, s, "hers")

	// Keys of oneself, and no more.
	own := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:CreateAccessKey","Resource":"arn:aws:iam::*:user/carol"}}`
	must(t, "policy")(admin.query(t, s, "iam", "PutUserPolicy", "UserName", "carol", "PolicyName", "own", "PolicyDocument", own))
	must(t, "a key of carol's own")(carol.query(t, s, "iam", "CreateAccessKey", "UserName", "carol"))
	for _, name := range []string{"alice", "root"} {
		refuses("carol", carol, upon(name))
	}
	refuses("carol", carol, upon("carol")[:3])

	// All of IAM gives what policies give, and nothing of an administrator's.
	must(t, "policy")(admin.query(t, s, "iam", "PutUserPolicy", "UserName", "carol", "PolicyName", "own", "PolicyDocument", strings.Replace(everything, `"Action":"*"`, `"Action":"iam:*"`, 1)))
	refuses("who has all of IAM", carol, upon("root"))
	refused(t, "by REST")(carol.rest(t, s, "GET", "/hers/secret", ""))

	// A chain: reader may assume roles, and "victim" trusts root alone.
	may := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["sts:AssumeRole","s3:GetObject"],"Resource":"*"}}`
	must(t, "policy")(admin.query(t, s, "iam", "PutRolePolicy", "RoleName", "reader", "PolicyName", "p", "PolicyDocument", may))
	must(t, "role")(admin.query(t, s, "iam", "CreateRole", "RoleName", "victim", "AssumeRolePolicyDocument", strings.Replace(everybodyTrusted, `"*"`, `"arn:aws:iam:::user/root"`, 1)))
	newRole(t, s, admin, "weak")
	refused(t, "a role that does not trust")(session.query(t, s, "sts", "AssumeRole", "RoleArn", "arn:aws:iam::000000000000:role/victim", "RoleSessionName", "sess"))
	weak := session.inRole(t, s, "weak")
	must(t, "the first session reads")(session.s3(t, s, "GET", "/hers/secret", ""))
	refused(t, "the last of a chain reads what the first may")(weak.s3(t, s, "GET", "/hers/secret", ""))
	if status, body := session.query(t, s, "sts", "AssumeRole", "RoleArn", "arn:aws:iam::000000000000:role/weak", "RoleSessionName", "sess", "DurationSeconds", "7200"); status == http.StatusOK {
		t.Errorf("a chain of roles for two hours: %s", body)
	}
	narrow := `{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*"}}`
	body := must(t, "with a policy of the session")(bob.query(t, s, "sts", "AssumeRole", "RoleArn", "arn:aws:iam::000000000000:role/reader", "RoleSessionName", "sess", "Policy", narrow))
	none := person{key: element(body, "AccessKeyId"), secret: element(body, "SecretAccessKey"), token: element(body, "SessionToken")}
	refused(t, "a session that may nothing")(none.s3(t, s, "GET", "/hers/secret", ""))
	refused(t, "and what it assumes")(none.query(t, s, "sts", "AssumeRole", "RoleArn", "arn:aws:iam::000000000000:role/weak", "RoleSessionName", "sess"))
	// The key that all came from goes, and all with it.
	s.OGW("user", "rotate", "bob")
	for name, p := range map[string]person{"the first": session, "the last": weak} {
		if status, body := p.s3(t, s, "GET", "/hers/open/none", ""); status == http.StatusOK || status == http.StatusNotFound {
			t.Errorf("%s of the chain, after its key went: %d %s", name, status, body)
		}
	}
}

// TestVersion2Borders: what Version 2 signs in a header leaves the body open, so that it is
// not taken; a form that it signs names its bucket and is no more than its signer.
func TestVersion2Borders(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	alice.withBucket(t, s, "hers")
	bob.withBucket(t, s, "his")
	code := func(p person, text string) string {
		h := hmac.New(sha1.New, []byte(p.secret))
		h.Write([]byte(text))
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		sign := "AWS " + alice.key + ":" + code(alice, method+"\n\n\n"+date+"\n/hers/secret")
		if status, body := (person{}).s3(t, s, method, "/hers/secret", "", "Date", date, "Authorization", sign); status/100 != 4 {
			t.Errorf("%s signed with Version 2: %d %s", method, status, body)
		}
	}
	form := func(p person, conditions string) string {
		policy := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"expiration": %q, "conditions": [%s["starts-with", "$key", ""]]}`,
			time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z"), conditions))
		body := ""
		for _, field := range [][2]string{{"key", "form"}, {"policy", policy}, {"AWSAccessKeyId", p.key}, {"signature", code(p, policy)}} {
			body += fmt.Sprintf("--x\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", field[0], field[1])
		}
		return body + "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nforged\r\n--x--\r\n"
	}
	post := func(bucket, body string) (int, string) {
		return person{}.s3(t, s, "POST", "/"+bucket, body, "Content-Type", formType)
	}
	must(t, "a form of bob's own")(post("his", form(bob, `{"bucket": "his"}, `)))
	for what, c := range map[string]struct{ bucket, body string }{
		"a form for alice's bucket":       {"hers", form(bob, `{"bucket": "hers"}, `)},
		"a form for another bucket":       {"hers", form(alice, `{"bucket": "his"}, `)},
		"a form of alice's for no bucket": {"hers", form(alice, "")},
		"a form with alice's key":         {"hers", strings.Replace(form(bob, `{"bucket": "hers"}, `), bob.key, alice.key, 1)},
	} {
		if status, body := post(c.bucket, c.body); status/100 != 4 {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	if status, body := alice.s3(t, s, "GET", "/hers/form", ""); status != http.StatusNotFound {
		t.Errorf("a form was stored: %d %s", status, body)
	}
	must(t, "what was attacked")(alice.s3(t, s, "GET", "/hers/secret", ""))
}

// TestBoundaryIsDemanded: who may only make roles that have a boundary makes none without:
// a key that a request does not have is absent, for conditions too.
func TestBoundaryIsDemanded(t *testing.T) {
	s := newServer(t, restUsers)
	admin, alice := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "alice")
	boundary := element(must(t, "policy")(admin.query(t, s, "iam", "CreatePolicy", "PolicyName", "bound", "PolicyDocument", everything)), "Arn")
	must(t, "policy")(admin.query(t, s, "iam", "PutUserPolicy", "UserName", "alice", "PolicyName", "p", "PolicyDocument",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:*","Resource":"*"},{"Effect":"Deny","Action":"iam:CreateRole","Resource":"*","Condition":{"Null":{"iam:PermissionsBoundary":"true"}}}]}`))
	role := []string{"RoleName", "made", "AssumeRolePolicyDocument", everybodyTrusted}
	refused(t, "a role without a boundary")(alice.query(t, s, "iam", "CreateRole", role...))
	must(t, "a role with one")(alice.query(t, s, "iam", "CreateRole", append(role, "PermissionsBoundary", boundary)...))
}
