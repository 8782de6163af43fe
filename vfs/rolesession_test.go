package vfs

import (
	"context"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/rights"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// trustAll is the policy of a role that policies of users decide on.
const trustAll = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}}`

var worker = iam.Holder{Kind: iam.InRole, Name: "worker"}

// session begins one of the role worker and returns how its credentials come back.
func (c *cast) session(q iam.Assume) (*Subject, iam.Credentials) {
	c.t.Helper()
	u, err := c.fs.Users().ByName(bg, "bob")
	want(c.t, err, nil)
	if len(u.Keys) == 0 {
		want(c.t, c.fs.Users().Update(bg, "bob", func(u *users.User) error {
			u.Keys = []users.AccessKey{{ID: "KEYBOB", Secret: "secret"}}
			return nil
		}), nil)
	}
	q.Role, q.Session, q.Key = iam.RoleARN("/", "worker"), "sess", "KEYBOB"
	got, err := c.fs.AssumeRole(c.as("bob"), q)
	want(c.t, err, nil)
	return c.reopened(got), got
}

// reopened is who a door finds by credentials.
func (c *cast) reopened(got iam.Credentials) *Subject {
	c.t.Helper()
	who, secret, s, err := c.fs.IAM().Credential(bg, got.Key, got.Token)
	want(c.t, err, nil)
	if secret != got.Secret {
		c.t.Error("another secret")
	}
	return &Subject{User: who.ID, Name: who.Name, UID: who.UID, GID: who.GID, Session: s}
}

func (c *cast) worker(statements ...string) {
	c.t.Helper()
	_, err := c.fs.IAM().CreateRole(bg, iam.NewRole{Name: "worker", Trust: []byte(trustAll)})
	want(c.t, err, nil)
	if statements != nil {
		c.inline(worker, statements...)
	}
}

func (c *cast) readsAs(s *Subject, bucket, key string) error {
	_, err := c.fs.HeadObject(WithSubject(bg, s), ObjectName{bucket, key}, GetOptions{})
	return err
}

// TestRoleSession: a session may what the role's policies allow, within its own, owns
// what it makes, and has nothing by owning it.
func TestRoleSession(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "a", "b", "open")
	c.worker()
	s, _ := c.session(iam.Assume{})
	want(t, c.readsAs(s, "bkt", "a"), ErrAccess)
	_, err := c.fs.CreateBucket(WithSubject(bg, s), "new", nil)
	want(t, err, ErrAccess)
	c.inline(worker, allow("s3:*", "*"))
	want(t, c.readsAs(s, "bkt", "a"), nil)
	_, err = c.fs.CreateBucket(WithSubject(bg, s), "new", NewCred(s.UID, s.GID))
	want(t, err, nil)
	want(t, putAs(c.fs, s, "new", "k", nil), nil)
	info, err := c.fs.HeadObject(bg, ObjectName{"new", "k"}, GetOptions{})
	if err != nil || info.UID != s.UID || s.UID < users.FirstUID {
		t.Errorf("%+v %v", info, err)
	}
	c.inline(worker, allow("s3:ListBucket", "*"))
	want(t, c.readsAs(s, "new", "k"), ErrAccess)

	// A session policy bounds, and gives nothing.
	c.inline(worker, allow("s3:GetObject", rights.ARNPrefix+"bkt/*"))
	_, err = c.fs.IAM().CreatePolicy(bg, iam.NewPolicy{Name: "only-b", Text: policyOf(allow("s3:*", rights.ARNPrefix+"bkt/b"))})
	want(t, err, nil)
	onlyA, _ := c.session(iam.Assume{Policy: policyOf(allow("s3:*", rights.ARNPrefix+"bkt/a", rights.ARNPrefix+"other/*"))})
	onlyB, credentials := c.session(iam.Assume{Managed: []string{iam.PolicyARN("/", "only-b")}})
	for key, who := range map[string]*Subject{"a": onlyA, "b": onlyB} {
		want(t, c.readsAs(who, "bkt", key), nil)
		want(t, c.readsAs(who, "bkt", "open"), ErrAccess)
	}
	want(t, putAs(c.fs, onlyA, "bkt", "a", nil), ErrAccess)

	// A bucket's policy names the role, which bounds hold, or a session, which nothing but
	// a deny does.
	named := func(arn, key string) string {
		return strings.Replace(statement("Allow", "s3:GetObject", "bkt/"+key), "arn:aws:iam:::user/bob", arn, 1)
	}
	c.inline(worker, allow("s3:ListBucket", "*"))
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(named(iam.RoleARN("/", "worker"), "open"))), nil)
	want(t, c.readsAs(s, "bkt", "open"), nil)
	want(t, c.readsAs(onlyA, "bkt", "open"), ErrAccess)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(named(iam.SessionARN("worker", "sess"), "open"))), nil)
	want(t, c.readsAs(onlyA, "bkt", "open"), nil)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(named(iam.SessionARN("worker", "other"), "open"))), nil)
	want(t, c.readsAs(s, "bkt", "open"), ErrAccess)
	text, _, err := c.fs.BucketPolicy(bg, "bkt")
	if err != nil || !strings.Contains(string(text), iam.SessionARN("worker", "other")) {
		t.Errorf("%s %v", text, err)
	}
	c.inline(worker, allow("s3:*", "*"), deny("s3:GetObject", rights.ARNPrefix+"bkt/a"))
	want(t, c.readsAs(onlyA, "bkt", "a"), ErrAccess)
	want(t, c.readsAs(onlyB, "bkt", "b"), nil)
	// A policy of the session that is no more lets nothing through.
	want(t, c.fs.IAM().DeletePolicy(bg, "only-b"), nil)
	want(t, c.readsAs(onlyB, "bkt", "b"), ErrAccess)
	c.reopened(credentials)
}

// TestRoleBoundary: the boundary of a role holds for what a bucket gives the role.
func TestRoleBoundary(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "a", "b")
	c.worker(allow("s3:*", "*"))
	_, err := c.fs.IAM().CreatePolicy(bg, iam.NewPolicy{Name: "bound", Text: policyOf(allow("s3:*", rights.ARNPrefix+"bkt/a"))})
	want(t, err, nil)
	s, _ := c.session(iam.Assume{})
	want(t, c.readsAs(s, "bkt", "b"), nil)
	want(t, c.fs.IAM().SetBoundary(bg, worker, "bound"), nil)
	want(t, c.readsAs(s, "bkt", "a"), nil)
	want(t, c.readsAs(s, "bkt", "b"), ErrAccess)
}

// TestRevokedSessions: sessions that were begun before a time end by policy, others do
// not, and with the role all do, while a body arrives.
func TestRevokedSessions(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "a")
	c.worker(allow("s3:*", "*"))
	s, _ := c.session(iam.Assume{})
	older := func(time string) string {
		return strings.TrimSuffix(deny("*", "*"), "}") + `,"Condition":{"DateLessThan":{"aws:TokenIssueTime":"` + time + `"}}}`
	}
	c.inline(worker, allow("s3:*", "*"), older("2000-01-01T00:00:00Z"))
	want(t, c.readsAs(s, "bkt", "a"), nil)
	c.inline(worker, allow("s3:*", "*"), older("2999-01-01T00:00:00Z"))
	want(t, c.readsAs(s, "bkt", "a"), ErrAccess)
	c.inline(worker, allow("s3:*", "*"))
	gone := &hookReader{Reader: strings.NewReader("body"), hook: func() {
		want(t, c.fs.IAM().DeleteInline(bg, worker, "p"), nil)
		want(t, c.fs.IAM().DeleteRole(bg, "worker"), nil)
	}}
	_, err := c.fs.PutObject(WithSubject(bg, s), ObjectName{"bkt", "k"}, gone, PutOptions{Size: 4})
	want(t, err, ErrAccess)
	want(t, c.reads("alice", "bkt", "k"), ErrNoSuchKey)
	want(t, c.fs.Users().Add(bg, users.User{Name: "heir", UID: s.UID}), ErrUIDTaken)
	_, err = c.fs.Users().Make(bg, users.User{Name: "heir", UID: s.UID}, users.Options{Inherit: true})
	want(t, err, nil)
}

// TestSessionEnds: neither the program itself nor an expired token is a session.
func TestSessionEnds(t *testing.T) {
	c := newCast(t)
	c.worker()
	_, err := c.fs.AssumeRole(context.Background(), iam.Assume{Role: iam.RoleARN("/", "worker"), Session: "sess"})
	want(t, err, ErrInvalid)
	_, credentials := c.session(iam.Assume{Duration: 900})
	after := func(d time.Duration) {
		now := func() time.Time { return c.fs.cfg.Now().Add(d) }
		c.fs.rights.IAM = iam.New(iam.Config{Store: userStore{c.fs}, Users: c.fs.users, May: c.fs.rights.MayAdminister, Secret: c.fs.StoreSecret, Now: now})
	}
	after(890 * time.Second)
	c.reopened(credentials)
	after(901 * time.Second)
	_, _, _, err = c.fs.IAM().Credential(bg, credentials.Key, credentials.Token)
	want(t, err, iam.ErrTokenExpired)
}

// TestProviderCreatedAnew: a session ends with the identity provider that vouched for it,
// for good, also where the same issuer is listed again; those of the new one hold from
// the second on in which it was listed.
func TestProviderCreatedAnew(t *testing.T) {
	c := newCast(t)
	c.worker()
	clock := c.fs.cfg.Now
	at := func(d time.Duration) {
		c.fs.cfg.Now = func() time.Time { return clock().Truncate(time.Second).Add(d) }
		c.fs.rights.IAM = iam.New(iam.Config{Store: userStore{c.fs}, Users: c.fs.users, May: c.fs.rights.MayAdminister, Secret: c.fs.StoreSecret, Now: c.fs.cfg.Now})
	}
	create := func() {
		_, err := c.fs.IAM().CreateProvider(bg, "https://id.example", []string{"ogw"}, nil)
		want(t, err, nil)
	}
	begin := func() iam.Credentials {
		s, err := c.fs.IAM().Assume(bg, iam.Assume{Role: iam.RoleARN("/", "worker"), Session: "sess", Provider: "id.example"},
			func(cluster.Reader, *policy.Document) error { return nil })
		want(t, err, nil)
		return s
	}
	at(900 * time.Millisecond)
	create()
	s := begin()
	c.reopened(s)
	want(t, c.fs.IAM().DeleteProvider(bg, "id.example"), nil)
	refused := func() {
		_, _, _, err := c.fs.IAM().Credential(bg, s.Key, s.Token)
		want(t, err, iam.ErrBadToken)
	}
	refused()
	at(10 * time.Second)
	create()
	refused()
	c.reopened(begin())
}
