package adversary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ogw/httpapi/iam"
	"ogw/integration/testenv"
)

// query sends an operation of IAM or STS, signed by p; parameters are pairs.
func (p person) query(t *testing.T, s *testenv.Server, service, action string, parameters ...string) (int, string) {
	t.Helper()
	form := url.Values{"Action": {action}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	body := form.Encode()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.S3+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.key != "" {
		sum := sha256.Sum256([]byte(body))
		c := aws.Credentials{AccessKeyID: p.key, SecretAccessKey: p.secret, SessionToken: p.token}
		if err := v4.NewSigner().SignHTTP(r.Context(), c, r, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return send(t, r)
}

func element(body, name string) string {
	_, rest, _ := strings.Cut(body, "<"+name+">")
	text, _, _ := strings.Cut(rest, "</"+name+">")
	return text
}

// inRole is p in a session of a role.
func (p person) inRole(t *testing.T, s *testenv.Server, role string) person {
	t.Helper()
	body := must(t, "assume "+role)(p.query(t, s, "sts", "AssumeRole", "RoleArn", "arn:aws:iam::000000000000:role/"+role, "RoleSessionName", "sess"))
	return person{name: role + "/sess", key: element(body, "AccessKeyId"), secret: element(body, "SecretAccessKey"), token: element(body, "SessionToken")}
}

const everybodyTrusted = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}}`

const roleMayReadOpen = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::hers/open/*"}}`

// newRole makes a role that everybody may assume and that reads what is open.
func newRole(t *testing.T, s *testenv.Server, admin person, name string) {
	t.Helper()
	must(t, "role")(admin.query(t, s, "iam", "CreateRole", "RoleName", name, "AssumeRolePolicyDocument", everybodyTrusted))
	must(t, "policy")(admin.query(t, s, "iam", "PutRolePolicy", "RoleName", name, "PolicyName", "p", "PolicyDocument", roleMayReadOpen))
}

// TestEveryIAMOperation: neither a stranger, nor a user without rights, nor a session of a
// role, nor who has a forged token does anything to identities.
func TestEveryIAMOperation(t *testing.T) {
	s := newServer(t, restUsers)
	admin, bob := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "bob")
	newRole(t, s, admin, "reader")
	must(t, "role")(admin.query(t, s, "iam", "CreateRole", "RoleName", "victim", "AssumeRolePolicyDocument", strings.Replace(everybodyTrusted, `"*"`, `"arn:aws:iam:::user/root"`, 1)))
	must(t, "group")(admin.query(t, s, "iam", "CreateGroup", "GroupName", "victims"))
	must(t, "provider")(admin.query(t, s, "iam", "CreateOpenIDConnectProvider", "Url", "https://id.example"))
	policy := element(must(t, "policy")(admin.query(t, s, "iam", "CreatePolicy", "PolicyName", "all", "PolicyDocument", roleMayReadOpen)), "Arn")
	session := bob.inRole(t, s, "reader")
	forged := session
	forged.token = "A" + forged.token[1:]
	if forged.token == session.token {
		forged.token = "B" + session.token[1:]
	}
	stolen := bob
	stolen.token = session.token
	before := must(t, "roles")(admin.query(t, s, "iam", "ListRoles"))
	before = element(before, "ListRolesResult")
	// One form has what every operation needs.
	all := []string{"Name", "fed", "UserName", "root", "NewUserName", "mallory", "RoleName", "victim", "GroupName", "victims", "NewGroupName", "mine", "PolicyName", "p", "PolicyDocument", roleMayReadOpen,
		"AssumeRolePolicyDocument", everybodyTrusted, "PolicyArn", policy, "VersionId", "v1", "AccessKeyId", admin.key, "Status", "Active",
		"OpenIDConnectProviderArn", "arn:aws:iam::000000000000:oidc-provider/id.example", "ClientID", "mine", "Url", "https://evil.example", "MaxSessionDuration", "43200",
		"RoleArn", "arn:aws:iam::000000000000:role/victim", "RoleSessionName", "sess", "WebIdentityToken", "e30.e30.", "PolicySourceArn", "arn:aws:iam:::user/root", "ActionNames.member.1", "s3:GetObject"}
	sts := map[string]bool{"AssumeRole": true, "AssumeRoleWithWebIdentity": true, "GetSessionToken": true, "GetFederationToken": true, "GetCallerIdentity": true}
	for _, action := range iam.Operations() {
		service := map[bool]string{true: "sts", false: "iam"}[sts[action]]
		for _, p := range []person{{name: "a stranger"}, bob, session, forged, stolen} {
			own := p.name == "bob" && p.token == "" && (action == "GetSessionToken" || action == "GetFederationToken") || p.key != "" && action == "GetCallerIdentity" && (p == bob || p == session)
			form := all
			if strings.HasSuffix(action, "PermissionsBoundary") {
				form = append(form, "PermissionsBoundary", policy)
			}
			status, body := p.query(t, s, service, action, form...)
			web := action == "AssumeRoleWithWebIdentity" && status == http.StatusBadRequest // a token of nobody
			if own != (status == http.StatusOK) || !own && status != http.StatusForbidden && !web {
				t.Errorf("%s as %s (%.8s): %d %s", action, p.name, p.token, status, body)
			}
		}
	}
	after := element(must(t, "roles")(admin.query(t, s, "iam", "ListRoles")), "ListRolesResult")
	if after != before {
		t.Errorf("roles were\n%s\nand are\n%s", before, after)
	}
	audited(t, s, "a refused AssumeRole", func(l auditLine) bool {
		return l.Operation == "AssumeRole" && l.Result == "refused" && l.User == "bob"
	})
	audited(t, s, "a session", func(l auditLine) bool {
		return l.Operation == "AssumeRole" && l.Result == "ok" && strings.Contains(l.Detail, session.key) && !strings.Contains(l.Detail, session.secret)
	})
}

// TestFederatedUser: whom a user vouches for does what both the user may and the policies
// of the session say, an administrator's too, and nothing to identities.
func TestFederatedUser(t *testing.T) {
	s := newServer(t, restUsers)
	admin, alice, bob := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	for _, key := range []string{"open/k", "secret"} {
		must(t, key)(alice.s3(t, s, "PUT", "/hers/"+key, "bytes"))
	}
	federated := func(p person, policy ...string) person {
		t.Helper()
		body := must(t, "federate")(p.query(t, s, "sts", "GetFederationToken", append([]string{"Name", "app"}, policy...)...))
		return person{name: "app", key: element(body, "AccessKeyId"), secret: element(body, "SecretAccessKey"), token: element(body, "SessionToken")}
	}
	for _, c := range []struct {
		who          person
		what         string
		open, secret int
	}{
		{federated(alice, "Policy", roleMayReadOpen), "alice's", 200, 403},
		{federated(admin, "Policy", roleMayReadOpen), "the administrator's", 200, 403},
		{federated(bob, "Policy", roleMayReadOpen), "bob's", 403, 403},
		{federated(alice), "alice's without policies", 403, 403},
		{federated(admin), "the administrator's without policies", 403, 403},
	} {
		for key, want := range map[string]int{"open/k": c.open, "secret": c.secret} {
			a, _ := c.who.s3(t, s, "GET", "/hers/"+key, "")
			b, _ := c.who.rest(t, s, "GET", "/hers/"+key, "", "X-Amz-Security-Token", c.who.token)
			if a != want || b != want {
				t.Errorf("%s: GET %s: %d, over REST %d, want %d", c.what, key, a, b, want)
			}
		}
		for _, q := range [][2]string{{"PUT", "/hers/open/new"}, {"DELETE", "/hers/open/k"}, {"GET", "/hers"}, {"GET", "/"}, {"PUT", "/new-bucket"}} {
			if status, body := c.who.s3(t, s, q[0], q[1], ""); status != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s", c.what, q[0], q[1], status, body)
			}
		}
		if status, body := c.who.query(t, s, "sts", "GetCallerIdentity"); status != http.StatusOK || !strings.HasSuffix(element(body, "Arn"), ":federated-user/app") {
			t.Errorf("%s: %d %s", c.what, status, body)
		}
		for _, q := range [][2]string{{"iam", "ListUsers"}, {"sts", "GetSessionToken"}, {"sts", "GetFederationToken"}} {
			if status, body := c.who.query(t, s, q[0], q[1], "Name", "again"); status != http.StatusForbidden {
				t.Errorf("%s: %s: %d %s", c.what, q[1], status, body)
			}
		}
	}
	for _, bad := range [][]string{{"Name", "a"}, {"Name", strings.Repeat("a", 33)}, {"Name", "a/b"}, {"Name", "app", "DurationSeconds", "899"}, {"Name", "app", "Policy", "{"}} {
		if status, body := alice.query(t, s, "sts", "GetFederationToken", bad...); status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
}

// TestSessionHolds: a session does what its role may and no more, at every door and in
// every way of signing, and nothing once what it came from is gone.
func TestSessionHolds(t *testing.T) {
	s := newServer(t, restUsers)
	admin, alice, bob := person{name: "root", key: s.KeyID, secret: s.Secret}, newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	for _, key := range []string{"open/k", "secret"} {
		must(t, key)(alice.s3(t, s, "PUT", "/hers/"+key, "bytes"))
	}
	newRole(t, s, admin, "reader")
	r := bob.inRole(t, s, "reader")
	reads := func(p person, key string) []int {
		t.Helper()
		a, _ := p.s3(t, s, "GET", "/hers/"+key, "")
		b, _ := p.rest(t, s, "GET", "/hers/"+key, "", "X-Amz-Security-Token", p.token)
		c, _ := send(t, p.presigned(t, s, "/hers/"+key))
		return []int{a, b, c}
	}
	all := func(what string, got []int, want ...int) {
		t.Helper()
		for i, status := range got {
			if status != want[min(i, len(want)-1)] {
				t.Errorf("%s: %v, want %v", what, got, want)
				return
			}
		}
	}
	all("what is open", reads(r, "open/k"), 200)
	all("what is not", reads(r, "secret"), 403)
	for _, method := range []string{"PUT", "DELETE"} {
		refused(t, method)(r.s3(t, s, method, "/hers/open/k", "forged"))
	}
	refused(t, "makes a bucket")(r.s3(t, s, "PUT", "/of-a-session", ""))
	refused(t, "lists")(r.s3(t, s, "GET", "/hers", ""))
	// The token of one with the key of another, and without.
	other := alice.inRole(t, s, "reader")
	other.token = r.token
	all("another's token", reads(other, "open/k"), 400, 401, 400)
	r2 := r
	r2.token = ""
	all("no token", reads(r2, "open/k"), 403, 401, 403)
	// A key that is removed takes its sessions with it, and a role does.
	s.OGW("user", "rotate", "bob")
	all("after a rotation", reads(r, "open/k"), 400, 401, 400)
	r = alice.inRole(t, s, "reader")
	all("another session", reads(r, "open/k"), 200)
	must(t, "policy")(admin.query(t, s, "iam", "DeleteRolePolicy", "RoleName", "reader", "PolicyName", "p"))
	all("without a policy", reads(r, "open/k"), 403)
	must(t, "role")(admin.query(t, s, "iam", "DeleteRole", "RoleName", "reader"))
	all("without the role", reads(r, "open/k"), 400, 401, 400)
	newRole(t, s, admin, "reader")
	all("another role of the name", reads(r, "open/k"), 400, 401, 400)
}

// presigned is a URL that p signed, as Version 4 has it.
func (p person) presigned(t *testing.T, s *testenv.Server, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.S3+target+"?X-Amz-Expires=60", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := aws.Credentials{AccessKeyID: p.key, SecretAccessKey: p.secret, SessionToken: p.token}
	signed, _, err := v4.NewSigner().PresignHTTP(r.Context(), c, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		t.Fatal(err)
	}
	if r, err = http.NewRequestWithContext(context.Background(), http.MethodGet, signed, nil); err != nil {
		t.Fatal(err)
	}
	return r
}
