package iam

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
)

const accountRoot = "arn:aws:iam::000000000000:root"

// trust is a policy of trust with a kind of principal, and a condition or "".
func trust(kind, who, action, condition string) string {
	if condition != "" {
		condition = `,"Condition":` + condition
	}
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"` + kind + `":"` + who + `"},"Action":"` + action + `"` + condition + `}]}`
}

func credentialsOf(body string) aws.Credentials {
	return aws.Credentials{AccessKeyID: textOf(body, "AccessKeyId"), SecretAccessKey: textOf(body, "SecretAccessKey"), SessionToken: textOf(body, "SessionToken")}
}

// assumes returns the credentials of a session of a role.
func (d *door) assumes(c aws.Credentials, role string, parameters ...string) aws.Credentials {
	d.t.Helper()
	status, body := d.callBy(c, "AssumeRole", append([]string{"RoleArn", iam.RoleARN("/", role), "RoleSessionName", "sess"}, parameters...)...)
	if status != http.StatusOK {
		d.t.Fatalf("assume %s: %d %s", role, status, body)
	}
	return credentialsOf(body)
}

func (d *door) refusedBy(c aws.Credentials, code, action string, parameters ...string) {
	d.t.Helper()
	status, body := d.callBy(c, action, parameters...)
	if got := textOf(body, "Code"); status < 400 || got != code {
		d.t.Errorf("%s %q: %d %s, want %s", action, parameters, status, body, code)
	}
}

func keyOf(who string) aws.Credentials {
	return aws.Credentials{AccessKeyID: "KEY" + who, SecretAccessKey: "secret-" + who}
}

func TestRoles(t *testing.T) {
	d := newDoor(t)
	aliceARN := textOf(second(d.call("alice", "GetCallerIdentity")), "Arn")
	text := trust("AWS", aliceARN, "sts:AssumeRole", "")
	id := d.ok("CreateRole", "RoleId", "RoleName", "r", "AssumeRolePolicyDocument", text, "Description", "d & e", "MaxSessionDuration", "7200", "Path", "/x/")
	if !strings.HasPrefix(id, "AROA") || d.ok("GetRole", "Arn", "RoleName", "R") != iam.RoleARN("/x/", "r") || d.ok("GetRole", "MaxSessionDuration", "RoleName", "r") != "7200" {
		t.Error(id)
	}
	if shown := d.ok("GetRole", "AssumeRolePolicyDocument", "RoleName", "r"); shown != escape([]byte(text)) {
		t.Errorf("trust is shown as %s", shown)
	}
	d.refused("root", "EntityAlreadyExists", "CreateRole", "RoleName", "r", "AssumeRolePolicyDocument", text)
	d.refused("root", "MalformedPolicyDocument", "CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", strings.Replace(text, "alice", "zoe", 1))
	d.refused("root", "MalformedPolicyDocument", "CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", allow("sts:AssumeRole", "*"))
	d.refused("root", "LimitExceeded", "CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", `{"Id":"`+strings.Repeat("x", 2048)+text[1:])
	d.refused("root", "ValidationError", "CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", text, "MaxSessionDuration", "100")
	d.refused("root", "NotImplemented", "CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", text, "Tags.member.1.Key", "k")
	d.refused("root", "NotImplemented", "CreateInstanceProfile", "InstanceProfileName", "p")
	d.refused("root", "NotImplemented", "DecodeAuthorizationMessage")
	d.refused("alice", "AccessDenied", "CreateRole", "RoleName", "mine", "AssumeRolePolicyDocument", text)
	d.refused("alice", "AccessDenied", "UpdateAssumeRolePolicy", "RoleName", "r", "PolicyDocument", text)

	d.ok("PutRolePolicy", "", "RoleName", "r", "PolicyName", "p", "PolicyDocument", allow("s3:*", "*"))
	arn := d.ok("CreatePolicy", "Arn", "PolicyName", "m", "PolicyDocument", allow("s3:*", "*"))
	d.ok("AttachRolePolicy", "", "RoleName", "r", "PolicyArn", arn)
	d.ok("PutRolePermissionsBoundary", "", "RoleName", "r", "PermissionsBoundary", arn)
	if d.ok("GetRole", "PermissionsBoundaryArn", "RoleName", "r") != arn || d.ok("ListEntitiesForPolicy", "RoleName", "PolicyArn", arn) != "r" ||
		d.ok("GetRolePolicy", "RoleName", "RoleName", "r", "PolicyName", "p") != "r" || d.ok("ListAttachedRolePolicies", "PolicyArn", "RoleName", "r") != arn {
		t.Error("the role does not hold what it was given")
	}
	d.refused("root", "DeleteConflict", "DeleteRole", "RoleName", "r")
	d.ok("DeleteRolePolicy", "", "RoleName", "r", "PolicyName", "p")
	d.ok("DetachRolePolicy", "", "RoleName", "r", "PolicyArn", arn)
	d.ok("UpdateRole", "", "RoleName", "r", "MaxSessionDuration", "3600")
	if got := d.ok("ListRoles", "Description"); got != "d &amp; e" {
		t.Error(got)
	}
	d.ok("ListInstanceProfilesForRole", "", "RoleName", "r")
	d.ok("DeleteRole", "", "RoleName", "r")
	d.ok("DeletePolicy", "", "PolicyArn", arn) // no boundary is left
	d.refused("root", "NoSuchEntity", "GetRole", "RoleName", "r")
	if again := d.ok("CreateRole", "RoleId", "RoleName", "r", "AssumeRolePolicyDocument", text); again == id {
		t.Error("an ID is given twice")
	}
}

func second[A, B any](_ A, b B) B { return b }

// TestAssumeRole: who may, by which trust, for how long, and what ends a session.
func TestAssumeRole(t *testing.T) {
	d := newDoor(t)
	aliceARN := textOf(second(d.call("alice", "GetCallerIdentity")), "Arn")
	d.ok("CreateRole", "", "RoleName", "hers", "AssumeRolePolicyDocument", trust("AWS", aliceARN, "sts:AssumeRole", ""), "MaxSessionDuration", "7200")
	d.ok("CreateRole", "", "RoleName", "all", "AssumeRolePolicyDocument", trust("AWS", accountRoot, "sts:AssumeRole", ""))
	d.ok("CreateRole", "", "RoleName", "external", "AssumeRolePolicyDocument", trust("AWS", "*", "sts:AssumeRole", `{"StringEquals":{"sts:ExternalId":"42"}}`))
	role := func(name string) []string {
		return []string{"RoleArn", iam.RoleARN("/", name), "RoleSessionName", "sess"}
	}
	hers, all, external := role("hers"), role("all"), role("external")

	c := d.assumes(keyOf("alice"), "hers")
	who := second(d.callBy(c, "GetCallerIdentity"))
	if textOf(who, "Arn") != "arn:aws:sts::000000000000:assumed-role/hers/sess" || !strings.HasSuffix(textOf(who, "UserId"), ":sess") || textOf(who, "Account") != iam.Account {
		t.Error(who)
	}
	d.refused("bob", "AccessDenied", "AssumeRole", hers...)
	d.refused("root", "AccessDenied", "AssumeRole", hers...) // administrators, too, are trusted by name
	d.refused("alice", "AccessDenied", "AssumeRole", role("none")...)
	d.refused("alice", "AccessDenied", "AssumeRole", "RoleArn", iam.RoleARN("/x/", "hers"), "RoleSessionName", "sess")
	// The account: policies of the caller decide.
	d.refused("bob", "AccessDenied", "AssumeRole", all...)
	d.ok("PutUserPolicy", "", "UserName", "bob", "PolicyName", "p", "PolicyDocument", allow("sts:AssumeRole", iam.RoleARN("/", "all")))
	d.assumes(keyOf("bob"), "all")
	d.assumes(keyOf("root"), "all")
	d.refused("bob", "AccessDenied", "AssumeRole", external...)
	d.assumes(keyOf("bob"), "external", "ExternalId", "42")
	d.refused("bob", "AccessDenied", "AssumeRole", append(external, "ExternalId", "4?")...)
	// Durations, and one role by another.
	d.assumes(keyOf("alice"), "hers", "DurationSeconds", "7200")
	for _, seconds := range []string{"7201", "43201", "899", "0", "-1", "x"} {
		d.refused("alice", map[bool]string{true: "ValidationError", false: "MalformedInput"}[len(seconds) > 2], "AssumeRole", append(hers, "DurationSeconds", seconds)...)
	}
	d.ok("PutRolePolicy", "", "RoleName", "hers", "PolicyName", "p", "PolicyDocument", allow("sts:AssumeRole", "*"))
	d.ok("UpdateRole", "", "RoleName", "all", "MaxSessionDuration", "43200")
	chained := d.assumes(c, "all", "DurationSeconds", "3600")
	d.refusedBy(c, "ValidationError", "AssumeRole", append(all, "DurationSeconds", "3601")...)
	d.refusedBy(c, "AccessDenied", "GetSessionToken")
	d.refusedBy(c, "AccessDenied", "ListRoles")
	for _, p := range [][]string{{"RoleSessionName", "x"}, {"RoleSessionName", "a b"}, {"RoleSessionName", strings.Repeat("x", 65)}, {"Policy", strings.Repeat(" ", 2049)},
		{"PolicyArns.member.1.arn", "arn:aws:iam::000000000000:policy/none"}, {"Policy", "{"}} {
		if status, body := d.call("alice", "AssumeRole", append(hers[:4:4], p...)...); status != 400 && status != 404 && status != 403 {
			t.Errorf("%.40q: %d %s", p, status, body)
		}
	}
	// What ends them.
	d.ok("DeleteRolePolicy", "", "RoleName", "hers", "PolicyName", "p")
	d.refusedBy(c, "AccessDenied", "AssumeRole", all...)
	d.ok("DeleteAccessKey", "", "UserName", "alice", "AccessKeyId", "KEYalice")
	d.refusedBy(c, "InvalidClientTokenId", "GetCallerIdentity")
	d.refusedBy(chained, "InvalidClientTokenId", "GetCallerIdentity")
	c = d.assumes(keyOf("bob"), "all")
	d.ok("DeleteRole", "", "RoleName", "all")
	d.refusedBy(c, "InvalidClientTokenId", "GetCallerIdentity")
	d.ok("CreateRole", "", "RoleName", "all", "AssumeRolePolicyDocument", trust("AWS", accountRoot, "sts:AssumeRole", ""))
	d.refusedBy(c, "InvalidClientTokenId", "GetCallerIdentity")
}

// TestForgedTokens: what was not made here, for this key, opens nothing.
func TestForgedTokens(t *testing.T) {
	d, other := newDoor(t), newDoor(t)
	c := credentialsOf(second(d.call("bob", "GetSessionToken")))
	if who := second(d.callBy(c, "GetCallerIdentity")); !strings.HasSuffix(textOf(who, "Arn"), ":user/bob") {
		t.Error(who)
	}
	foreign := credentialsOf(second(other.call("bob", "GetSessionToken")))
	mine := credentialsOf(second(d.call("alice", "GetSessionToken")))
	raw, _ := base64.StdEncoding.DecodeString(c.SessionToken)
	raw[len(raw)/2] ^= 1
	for name, f := range map[string]aws.Credentials{
		"no token":      {AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey},
		"another store": foreign,
		"another's":     {AccessKeyID: mine.AccessKeyID, SecretAccessKey: mine.SecretAccessKey, SessionToken: c.SessionToken},
		"with own key":  {AccessKeyID: "KEYalice", SecretAccessKey: "secret-alice", SessionToken: c.SessionToken},
		"flipped":       {AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: base64.StdEncoding.EncodeToString(raw)},
		"cut":           {AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken[:40]},
		"no base64":     {AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: "%"},
		"huge":          {AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: strings.Repeat("A", 64<<10)},
	} {
		if status, body := d.callBy(f, "GetCallerIdentity"); status != 403 || textOf(body, "Code") != "InvalidClientTokenId" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	wrong := c
	wrong.SecretAccessKey = "secret-bob"
	d.refusedBy(wrong, "SignatureDoesNotMatch", "GetCallerIdentity")
	for _, seconds := range []string{"899", "129601"} {
		d.refused("bob", "ValidationError", "GetSessionToken", "DurationSeconds", seconds)
	}
}

// idp is a provider of web identities.
type idp struct {
	*httptest.Server
	key  *ecdsa.PrivateKey
	url  string      // without "https://"
	down atomic.Bool // answers that it is
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "ES256"}}}
	p := &idp{key: key}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	s.SetIssuer(p.URL)
	p.url = strings.TrimPrefix(p.URL, "https://")
	return p
}

func (p *idp) thumbprint() string {
	sum := sha1.Sum(p.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

func (p *idp) token(issuer, audience, subject string, valid time.Duration) string {
	return oidctest.SignIDToken(p.key, "k", "ES256", fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"iat":%d,"exp":%d}`, issuer, audience, subject,
		time.Now().Unix(), time.Now().Add(valid).Unix()))
}

// macToken is signed with the provider's public key as if it were a secret.
func (p *idp) macToken(t *testing.T, claims string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"k"}`)) + "." + claims
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// assumesWeb asks for a session of the role web by a token.
func (d *door) assumesWeb(token string) (int, string) {
	d.t.Helper()
	r, err := http.NewRequest(http.MethodPost, d.url+"/", strings.NewReader(formOf("AssumeRoleWithWebIdentity", "RoleArn", iam.RoleARN("/", "web"), "RoleSessionName", "job", "WebIdentityToken", token)))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return d.send(r)
}

// TestProviderDown: nobody is shut out for having asked while the identity provider did
// not answer; who sends wrong tokens is.
func TestProviderDown(t *testing.T) {
	d, p := newDoor(t), newIDP(t)
	d.server.cfg.Guesses = guess.New()
	provider := d.ok("CreateOpenIDConnectProvider", "OpenIDConnectProviderArn", "Url", p.URL, "ClientIDList.member.1", "ogw", "ThumbprintList.member.1", p.thumbprint())
	d.ok("CreateRole", "", "RoleName", "web", "AssumeRolePolicyDocument", trust("Federated", provider, "sts:AssumeRoleWithWebIdentity", ""))
	good := p.token(p.URL, "ogw", "ci:main", time.Hour)
	const tries = 25 // more wrong ones than are free
	p.down.Store(true)
	var all sync.WaitGroup
	for range tries {
		all.Go(func() {
			if status, body := d.assumesWeb(good); textOf(body, "Code") != "IDPCommunicationError" {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	p.down.Store(false)
	if status, body := d.assumesWeb(good); status != http.StatusOK {
		t.Errorf("a good token afterwards: %d %s", status, body)
	}
	d.server.cfg.Guesses = guess.New() // knows nobody who was right
	code := ""
	for range tries {
		code = textOf(second(d.assumesWeb(p.token(p.URL, "ogw", "ci:main", -time.Hour))), "Code")
	}
	if code != "Throttling" {
		t.Errorf("wrong tokens: %s", code)
	}
}

func TestWebIdentity(t *testing.T) {
	d, p, stranger := newDoor(t), newIDP(t), newIDP(t)
	provider := d.ok("CreateOpenIDConnectProvider", "OpenIDConnectProviderArn", "Url", p.URL+"/", "ClientIDList.member.1", "ogw", "ThumbprintList.member.1", p.thumbprint())
	if provider != iam.ProviderARN(p.url) || d.ok("GetOpenIDConnectProvider", "Url", "OpenIDConnectProviderArn", provider) != p.url || d.ok("ListOpenIDConnectProviders", "Arn") != provider {
		t.Error(provider)
	}
	d.refused("root", "EntityAlreadyExists", "CreateOpenIDConnectProvider", "Url", p.URL)
	d.refused("root", "ValidationError", "CreateOpenIDConnectProvider", "Url", "http://id.example")
	d.refused("alice", "AccessDenied", "CreateOpenIDConnectProvider", "Url", "https://id.example")
	condition := `{"StringEquals":{"` + p.url + `:aud":"ogw"},"StringLike":{"` + p.url + `:sub":"ci:*"}}`
	d.ok("CreateRole", "", "RoleName", "web", "AssumeRolePolicyDocument", trust("Federated", provider, "sts:AssumeRoleWithWebIdentity", condition))
	assume := d.assumesWeb
	status, body := assume(p.token(p.URL, "ogw", "ci:main", time.Hour))
	if status != 200 || textOf(body, "SubjectFromWebIdentityToken") != "ci:main" || textOf(body, "Provider") != provider {
		t.Fatalf("%d %s", status, body)
	}
	c := credentialsOf(body)
	if who := second(d.callBy(c, "GetCallerIdentity")); textOf(who, "Arn") != iam.SessionARN("web", "job") {
		t.Error(who)
	}
	good := p.token(p.URL, "ogw", "ci:main", time.Hour)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	mac := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"k"}`)) + "." + parts[1] + "." + parts[2]
	other := stranger
	now := time.Now().Unix()
	claims := func(rest string) string {
		return oidctest.SignIDToken(p.key, "k", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"ogw","sub":"ci:main","iat":%d%s}`, p.URL, now, rest))
	}
	for name, x := range map[string]struct{ token, code string }{
		"other subject":  {p.token(p.URL, "ogw", "dev:main", time.Hour), "AccessDenied"},
		"other audience": {p.token(p.URL, "else", "ci:main", time.Hour), "InvalidIdentityToken"},
		"expired":        {p.token(p.URL, "ogw", "ci:main", -time.Hour), "ExpiredTokenException"},
		"none":           {none, "InvalidIdentityToken"},
		"HMAC":           {mac, "InvalidIdentityToken"},
		"the key as MAC": {p.macToken(t, parts[1]), "InvalidIdentityToken"},
		"no signature":   {parts[0] + "." + parts[1] + ".", "InvalidIdentityToken"},
		"other claims":   {parts[0] + "." + strings.Split(p.token(p.URL, "ogw", "ci:root", time.Hour), ".")[1] + "." + parts[2], "InvalidIdentityToken"},
		"no end":         {claims(""), "InvalidIdentityToken"},
		"not yet":        {claims(fmt.Sprintf(`,"exp":%d,"nbf":%d`, now+7200, now+3600)), "InvalidIdentityToken"},
		"issuer's child": {p.token(p.URL+"/child", "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"issuer's case":  {p.token("hTTps://"+p.url, "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"fragment":       {p.token(p.URL+"#", "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"no issuer":      {p.token("", "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"stranger":       {other.token(other.URL, "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"stranger's key": {other.token(p.URL, "ogw", "ci:main", time.Hour), "InvalidIdentityToken"},
		"no token":       {"a.b.c", "InvalidIdentityToken"},
		"huge":           {strings.Repeat("a", 20001), "InvalidIdentityToken"},
	} {
		if status, body := assume(x.token); status/100 != 4 || textOf(body, "Code") != x.code {
			t.Errorf("%s: %d %s, want %s", name, status, body, x.code)
		}
	}
	d.ok("RemoveClientIDFromOpenIDConnectProvider", "", "OpenIDConnectProviderArn", provider, "ClientID", "ogw")
	if status, body := assume(good); status != 400 {
		t.Errorf("%d %s", status, body)
	}
	d.ok("UpdateOpenIDConnectProviderThumbprint", "", "OpenIDConnectProviderArn", provider, "ThumbprintList.member.1", strings.Repeat("00", 20))
	d.ok("AddClientIDToOpenIDConnectProvider", "", "OpenIDConnectProviderArn", provider, "ClientID", "ogw")
	if status, body := assume(good); textOf(body, "Code") != "IDPCommunicationError" {
		t.Errorf("a certificate that nobody vouches for: %d %s", status, body)
	}
	d.ok("DeleteOpenIDConnectProvider", "", "OpenIDConnectProviderArn", provider)
	d.refusedBy(c, "InvalidClientTokenId", "GetCallerIdentity")
	// Nobody else comes without a signature.
	for _, action := range []string{"GetCallerIdentity", "CreateUser", ""} {
		r, _ := http.NewRequest(http.MethodPost, d.url+"/", strings.NewReader(formOf(action, "UserName", strconv.Itoa(1))))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if status, body := d.send(r); status != 403 || textOf(body, "Code") != "MissingAuthenticationToken" {
			t.Errorf("%s: %d %s", action, status, body)
		}
	}
}
