package vfs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ogw/vfs/iam"
	"ogw/vfs/internal/rights"
	"ogw/vfs/users"
)

// TestSimulate: what Simulate says is what then happens, and why.
func TestSimulate(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "open/k", "closed/k")
	c.inline(bob, allow("s3:GetObject", rights.ARNPrefix+"bkt/*"))
	c.worker(allow("s3:*", "*"))
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Deny", "s3:GetObject", "bkt/closed/*"))), nil)
	user := func(name string) string { return "arn:aws:iam:::user/" + name }
	for _, x := range []struct {
		who, action, resource string
		allowed, explicit     bool
		why                   string
	}{
		{user("alice"), "s3:GetObject", "bkt/open/k", true, false, "ownership"},
		{user("alice"), "s3:PutBucketPolicy", "bkt", true, false, "ownership"},
		{user("bob"), "s3:GetObject", "bkt/open/k", true, false, `statement 1 "" of policy p of the user`},
		{user("bob"), "s3:GetObject", "bkt/closed/k", false, true, `statement 1 "" of the bucket's policy`},
		{user("bob"), "s3:PutObject", "bkt/open/k", false, false, "no policy allows"},
		{user("bob"), "s3:PutBucketPolicy", "bkt", false, false, "no policy allows"},
		{user("bob"), "s3:CreateBucket", "other", false, false, "no policy allows"},
		{user("administrator"), "s3:DeleteBucket", "bkt", true, false, "administrators"},
		{Anonymous, "s3:GetObject", "bkt/open/k", false, false, "anonymous"},
		{iam.RoleARN("/", "worker"), "s3:PutObject", "none/k", true, false, "role worker"},
		{user("bob"), "iam:CreateUser", "arn:aws:iam:::user/x", false, false, "no identity-based policy"},
	} {
		if !strings.HasPrefix(x.resource, "arn:") {
			x.resource = rights.ARNPrefix + x.resource
		}
		list, err := c.fs.Simulate(bg, x.who, []string{x.action}, []string{x.resource}, nil)
		want(t, err, nil)
		if got := list[0]; got.Allowed != x.allowed || got.Explicit != x.explicit || !strings.Contains(got.Why, x.why) || x.explicit != (got.Number > 0 && !got.Allowed) {
			t.Errorf("%s %s %s: %+v", x.who, x.action, x.resource, got)
		}
	}
	// It says what the doors do.
	for _, who := range []string{"alice", "bob"} {
		for _, key := range []string{"open/k", "closed/k"} {
			list, err := c.fs.Simulate(bg, user(who), []string{"s3:GetObject"}, []string{rights.ARNPrefix + "bkt/" + key}, nil)
			want(t, err, nil)
			if done := c.reads(who, "bkt", key); (done == nil) != list[0].Allowed {
				t.Errorf("%s %s: %v, simulated %+v", who, key, done, list[0])
			}
		}
	}
	dir, err := c.fs.Lookup(bg, Root, RootIno, "bkt")
	want(t, err, nil)
	made, err := c.fs.Mkdir(bg, Root, dir.Ino, "d", 0o555)
	want(t, err, nil)
	mustFile(t, c.fs, made.Ino, "f")
	_, err = c.fs.IAM().CreateRole(bg, iam.NewRole{Name: "bobs", Trust: []byte(strings.Replace(trustAll, `"*"`, `"arn:aws:iam:::user/bob"`, 1))})
	want(t, err, nil)
	_, err = c.fs.Users().Make(bg, users.User{Name: "carol"}, users.Options{FreeUID: true})
	want(t, err, nil)
	c.inline(iam.Holder{Kind: iam.User, Name: "carol"}, allow("iam:*", "*"))
	puts := func(key string) func(string) error {
		return func(who string) error { return putAs(c.fs, c.subject(who), "bkt", key, nil) }
	}
	deletes := func(key string) func(string) error {
		return func(who string) error {
			_, err := c.fs.DeleteObject(c.as(who), ObjectName{"bkt", key}, DeleteOptions{})
			return err
		}
	}
	assumes := func(role string) func(string) error {
		return func(who string) error {
			_, err := c.fs.AssumeRole(c.as(who), iam.Assume{Role: role, Session: "sess"})
			return err
		}
	}
	addsKey := func(name string) func(string) error {
		return func(who string) error {
			return c.fs.Users().Update(users.Guarded(c.as(who), c.fs.IAM().May("iam:CreateAccessKey", name)), name, func(*users.User) error { return nil })
		}
	}
	for _, x := range []struct {
		action, resource string
		do               func(who string) error
	}{
		{"s3:PutObject", rights.ARNPrefix + "bkt/d/new", puts("d/new")},
		{"s3:PutObject", rights.ARNPrefix + "bkt/d/f", puts("d/f")},
		{"s3:PutObject", rights.ARNPrefix + "bkt/e/new", puts("e/new")},
		{"s3:DeleteObject", rights.ARNPrefix + "bkt/d/f", deletes("d/f")},
		{"s3:DeleteObject", rights.ARNPrefix + "bkt/none", deletes("none")},
		{"sts:AssumeRole", iam.RoleARN("/", "bobs"), assumes(iam.RoleARN("/", "bobs"))},
		{"sts:AssumeRole", iam.RoleARN("/", "worker"), assumes(iam.RoleARN("/", "worker"))},
		{"sts:AssumeRole", iam.RoleARN("/", "none"), assumes(iam.RoleARN("/", "none"))},
		{"iam:CreateAccessKey", user("alice"), addsKey("alice")},
		{"iam:CreateAccessKey", user("administrator"), addsKey("administrator")},
	} {
		for _, who := range []string{"alice", "bob", "carol", "administrator"} {
			list, err := c.fs.Simulate(bg, user(who), []string{x.action}, []string{x.resource}, nil)
			want(t, err, nil)
			if done := x.do(who); errors.Is(done, ErrAccess) == list[0].Allowed || list[0].Why == "" {
				t.Errorf("%s %s %s: %v, simulated %+v", who, x.action, x.resource, done, list[0])
			}
		}
	}
	_, err = c.fs.Simulate(bg, user("nobody"), []string{"s3:GetObject"}, []string{rights.ARNPrefix + "bkt/k"}, nil)
	want(t, err, ErrNoSuchUser)
	_, err = c.fs.Simulate(bg, user("bob"), make([]string, 1001), make([]string, 1), nil)
	want(t, err, ErrInvalid)
	_, err = c.fs.Simulate(c.as("bob"), user("alice"), []string{"s3:GetObject"}, []string{rights.ARNPrefix + "bkt/k"}, nil)
	want(t, err, ErrAccess)
}

// stated are condition keys that a question or a door states.
type stated map[string]string

func (s stated) Value(key string) ([]string, bool) {
	v, ok := s[key]
	return []string{v}, ok
}

// TestSimulateSTS: what STS decides by a web identity or without a right, a simulation does.
func TestSimulateSTS(t *testing.T) {
	c := newCast(t)
	c.worker(allow("sts:*", "*"))
	c.inline(bob, strings.Replace(allow("sts:*", "*"), "Allow", "Deny", 1))
	_, err := c.fs.IAM().CreateRole(bg, iam.NewRole{Name: "web", Trust: []byte(`{"Statement":{"Effect":"Allow","Action":"sts:AssumeRoleWithWebIdentity",
		"Principal":{"Federated":"` + iam.ProviderARN("idp.example") + `"},"Condition":{"StringEquals":{"idp.example:sub":"ann"}}}}`)})
	want(t, err, nil)
	web := iam.RoleARN("/", "web")
	ask := func(who, action, resource string, keys stated) Simulated {
		t.Helper()
		list, err := c.fs.Simulate(bg, who, []string{action}, []string{resource}, keys)
		want(t, err, nil)
		return list[0]
	}
	const key = "aws:federatedprovider"
	for _, keys := range []stated{
		{key: iam.ProviderARN("idp.example"), "idp.example:sub": "ann"},
		{key: iam.ProviderARN("idp.example"), "idp.example:sub": "eve"},
		{key: iam.ProviderARN("other.example"), "idp.example:sub": "ann"},
		{key: "idp.example", "idp.example:sub": "ann"}, // no ARN
		{"idp.example:sub": "ann"},
	} {
		for _, role := range []string{web, iam.RoleARN("/", "worker"), iam.RoleARN("/", "none")} {
			allowed := false
			if provider, ok := strings.CutPrefix(keys[key], iam.ProviderARN("")); ok {
				subject := &Subject{UID: NobodyUID, GID: NobodyUID, Call: &Call{Values: keys}}
				_, err := c.fs.AssumeRole(WithSubject(bg, subject), iam.Assume{Role: role, Session: "sess", Provider: provider})
				allowed = err == nil
			}
			if allowed != (role == web && keys[key] == iam.ProviderARN("idp.example") && keys["idp.example:sub"] == "ann") {
				t.Fatalf("%v %s: %v", keys, role, allowed)
			}
			for _, who := range []string{"user/bob", "user/administrator", Anonymous} { // it does not ask, its token does
				if who != Anonymous {
					who = "arn:aws:iam:::" + who
				}
				if got := ask(who, "sts:AssumeRoleWithWebIdentity", role, keys); got.Allowed != allowed || got.Why == "" {
					t.Errorf("%s %v %s: %+v, want %v", who, keys, role, got, allowed)
				}
			}
		}
	}
	for action, who := range map[string][]string{
		"sts:GetCallerIdentity":  {"user/alice", "user/bob", "user/administrator", "role/worker"},
		"sts:GetSessionToken":    {"user/alice", "user/bob", "user/administrator"},
		"sts:GetFederationToken": {"user/alice", "user/bob", "user/administrator"},
	} {
		for _, name := range []string{"user/alice", "user/bob", "user/administrator", "role/worker", Anonymous} {
			arn := name
			if name == "role/worker" {
				arn = iam.RoleARN("/", "worker")
			} else if name != Anonymous {
				arn = "arn:aws:iam:::" + name
			}
			if got := ask(arn, action, "*", nil); got.Allowed != slices.Contains(who, name) || got.Why == "" {
				t.Errorf("%s %s: %+v", name, action, got)
			}
		}
	}
}
