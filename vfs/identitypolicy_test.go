package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/iam"
	"ogw/vfs/internal/rights"
	"ogw/vfs/users"
)

// allow is a statement of an identity's policy.
func allow(action string, resources ...string) string {
	return `{"Effect":"Allow","Action":"` + action + `","Resource":["` + strings.Join(resources, `","`) + `"]}`
}

func deny(action string, resources ...string) string {
	return strings.Replace(allow(action, resources...), "Allow", "Deny", 1)
}

var bob = iam.Holder{Kind: iam.User, Name: "bob"}

func (c *cast) inline(h iam.Holder, statements ...string) {
	c.t.Helper()
	want(c.t, c.fs.IAM().PutInline(bg, h, "p", policyOf(statements...)), nil)
}

// TestIdentityPolicy: a user without policies has what grants give, one with some has
// what these allow and no more.
func TestIdentityPolicy(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "open/k", "closed/k")
	_, err := c.fs.CreateBucket(bg, "bobs", c.cred("bob"))
	want(t, err, nil)
	puts := func(who, bucket, key string) error { return putAs(c.fs, c.subject(who), bucket, key, nil) }
	want(t, puts("bob", "bobs", "k"), nil)
	want(t, c.reads("bob", "bkt", "open/k"), ErrAccess)

	c.inline(bob, allow("s3:GetObject", rights.ARNPrefix+"bkt/open/*"))
	want(t, c.reads("bob", "bkt", "open/k"), nil)
	want(t, c.reads("bob", "bkt", "closed/k"), ErrAccess)
	want(t, c.reads("bob", "bkt", "open/missing"), ErrAccess) // who may not list
	want(t, c.reads("bob", "bobs", "k"), ErrAccess)
	want(t, puts("bob", "bkt", "open/k"), ErrAccess)
	want(t, puts("bob", "bobs", "k"), ErrAccess)
	_, err = c.fs.CreateBucket(c.as("bob"), "new", nil)
	want(t, err, ErrAccess)
	_, err = c.fs.ListBuckets(c.as("bob"), "", 10)
	want(t, err, ErrAccess)
	_, err = c.fs.ListObjects(c.as("bob"), "bkt", ListOptions{Prefix: "open/", MaxKeys: 10})
	want(t, err, ErrAccess)

	// The bucket's policy may allow more, and deny what is allowed.
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/closed/*"), statement("Deny", "s3:GetObject", "bkt/open/*"))), nil)
	want(t, c.reads("bob", "bkt", "closed/k"), nil)
	want(t, c.reads("bob", "bkt", "open/k"), ErrAccess)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", nil), nil)

	// A policy goes by the bucket's name of now, and gives nothing to a mode.
	root := mustLookup(t, c.fs, RootIno, "bkt")
	want(t, c.fs.Rename(bg, Root, EntryName{RootIno, "bkt"}, EntryName{RootIno, "bkt2"}, RenameFlags(0)), nil)
	want(t, c.reads("bob", "bkt2", "open/k"), ErrAccess)
	want(t, c.fs.Rename(bg, Root, EntryName{RootIno, "bkt2"}, EntryName{RootIno, "bkt"}, RenameFlags(0)), nil)
	mode := uint32(0o700)
	_, err = c.fs.SetAttr(bg, Root, root.Ino, SetAttr{Mode: &mode})
	want(t, err, nil)
	want(t, c.reads("bob", "bkt", "open/k"), ErrAccess)

	want(t, c.fs.IAM().DeleteInline(bg, bob, "p"), nil)
	want(t, c.reads("bob", "bobs", "k"), nil)
}

// TestIdentityPolicyOfAdministrators: nothing holds them.
func TestIdentityPolicyOfAdministrators(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	c.inline(iam.Holder{Kind: iam.User, Name: "administrator"}, deny("*", "*"))
	want(t, c.reads("administrator", "bkt", "k"), nil)
}

// TestManagedPolicy: versions, groups and attachments hold at once, and end at once.
func TestManagedPolicy(t *testing.T) {
	c := newCast(t)
	d := c.fs.IAM()
	c.bucketOf("bkt", "a", "b")
	m, err := d.CreatePolicy(bg, iam.NewPolicy{Name: "readers", Path: "/x/", Text: policyOf(allow("s3:GetObject", rights.ARNPrefix+"bkt/a"))})
	want(t, err, nil)
	arn := iam.PolicyARN(m.Path, m.Name)
	_, err = d.CreateGroup(bg, "staff", "")
	want(t, err, nil)
	staff := iam.Holder{Kind: iam.InGroup, Name: "staff"}
	want(t, d.Attach(bg, staff, arn), nil)
	want(t, c.reads("bob", "bkt", "a"), ErrAccess)
	want(t, d.AddMember(bg, "staff", "bob"), nil)
	want(t, c.reads("bob", "bkt", "a"), nil)
	v, err := d.CreateVersion(bg, "readers", policyOf(allow("s3:GetObject", rights.ARNPrefix+"bkt/b")), false)
	want(t, err, nil)
	want(t, c.reads("bob", "bkt", "b"), ErrAccess)
	want(t, d.SetDefault(bg, arn, iam.VersionID(v.Number)), nil)
	want(t, c.reads("bob", "bkt", "b"), nil)
	want(t, c.reads("bob", "bkt", "a"), ErrAccess)
	want(t, d.DeleteVersion(bg, arn, "v1"), nil)
	for _, err := range []error{d.DeletePolicy(bg, arn), d.DeleteGroup(bg, "staff"), d.DeleteVersion(bg, arn, "v2"), d.DeleteVersion(bg, arn, "v7")} {
		var e *iam.Error
		if !errors.As(err, &e) || e.Code != iam.DeleteConflict && e.Code != iam.NoSuchEntity {
			t.Errorf("%v", err)
		}
	}
	want(t, d.RemoveMember(bg, "staff", "bob"), nil)
	want(t, c.reads("bob", "bkt", "b"), ErrAccess)
	want(t, d.Detach(bg, staff, arn), nil)
	want(t, d.DeletePolicy(bg, arn), nil)
	want(t, d.DeleteGroup(bg, "staff"), nil)
}

// TestBoundary: it gives nothing, and takes from grants as from policies.
func TestBoundary(t *testing.T) {
	c := newCast(t)
	d := c.fs.IAM()
	c.bucketOf("bkt", "a", "b")
	_, err := d.CreatePolicy(bg, iam.NewPolicy{Name: "bound", Text: policyOf(allow("s3:GetObject", rights.ARNPrefix+"bkt/a"), allow("s3:*", rights.ARNPrefix+"bobs/*"))})
	want(t, err, nil)
	_, err = c.fs.CreateBucket(bg, "bobs", c.cred("bob"))
	want(t, err, nil)
	want(t, d.SetBoundary(bg, bob, "bound"), nil)
	want(t, c.reads("bob", "bkt", "a"), ErrAccess)
	want(t, putAs(c.fs, c.subject("bob"), "bobs", "k", nil), nil)
	_, err = c.fs.ListObjects(c.as("bob"), "bobs", ListOptions{MaxKeys: 10})
	want(t, err, ErrAccess)
	c.inline(bob, allow("s3:GetObject", rights.ARNPrefix+"*"))
	want(t, c.reads("bob", "bkt", "a"), nil)
	want(t, c.reads("bob", "bkt", "b"), ErrAccess)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/b"))), nil)
	want(t, c.reads("bob", "bkt", "b"), nil) // whom the resource names by itself
	want(t, d.DeleteBoundary(bg, bob), nil)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", nil), nil)
	want(t, c.reads("bob", "bkt", "b"), nil)
}

// TestIdentityPolicyInFlight: what is revoked while a body arrives publishes nothing.
func TestIdentityPolicyInFlight(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt")
	c.inline(bob, allow("s3:PutObject", rights.ARNPrefix+"bkt/*"))
	revoked := &hookReader{Reader: strings.NewReader("body"), hook: func() {
		c.inline(bob, allow("s3:PutObject", rights.ARNPrefix+"other/*"))
	}}
	_, err := c.fs.PutObject(c.as("bob"), ObjectName{"bkt", "k"}, revoked, PutOptions{Size: 4})
	want(t, err, ErrAccess)
	want(t, c.reads("alice", "bkt", "k"), ErrNoSuchKey)
}

type hookReader struct {
	io.Reader
	hook func()
}

func (h *hookReader) Read(b []byte) (int, error) {
	if h.hook != nil {
		h.hook()
		h.hook = nil
	}
	return h.Reader.Read(b)
}

// TestWhoAdministers: users, groups and policies are changed by administrators and
// whom a policy lets; administrators by administrators alone.
func TestWhoAdministers(t *testing.T) {
	c := newCast(t)
	d := c.fs.IAM()
	make := func(who, name string) error {
		_, err := d.CreateGroup(c.as(who), name, "")
		return err
	}
	for _, who := range []string{"bob", "stranger", "local bob"} {
		want(t, make(who, "g"), ErrAccess)
		want(t, d.PutInline(c.as(who), bob, "p", policyOf(allow("*", "*"))), ErrAccess)
	}
	want(t, make("administrator", "g0"), nil)
	c.inline(bob, allow("iam:*", "*"), deny("iam:CreateGroup", iam.GroupARN("/", "no*")))
	want(t, make("bob", "g1"), nil)
	want(t, make("bob", "no1"), ErrAccess)
	admin := iam.Holder{Kind: iam.User, Name: "administrator"}
	want(t, d.PutInline(c.as("bob"), admin, "p", policyOf(allow("*", "*"))), ErrAccess)
	change := func(name string) error {
		ctx := users.Guarded(c.as("bob"), d.May("iam:CreateAccessKey", name))
		return c.fs.Users().Update(ctx, name, func(u *users.User) error {
			u.Keys = append(u.Keys, users.AccessKey{ID: "AK" + name, Secret: "s"})
			return nil
		})
	}
	want(t, change("administrator"), ErrAccess)
	want(t, change("alice"), nil)
	var denied *iam.Denied
	if err := make("stranger", "g"); !errors.As(err, &denied) || !strings.Contains(denied.Message, "is not authorized to perform: iam:CreateGroup on resource: "+iam.GroupARN("/", "g")) {
		t.Error(err)
	}
}

// TestRemovedUserHoldsNothing: groups and policies forget a user who goes, and nothing
// passes with the name.
func TestRemovedUserHoldsNothing(t *testing.T) {
	c := newCast(t)
	d := c.fs.IAM()
	c.bucketOf("bkt", "k")
	_, err := d.CreateGroup(bg, "g", "")
	want(t, err, nil)
	want(t, d.AddMember(bg, "g", "bob"), nil)
	_, err = d.CreatePolicy(bg, iam.NewPolicy{Name: "m", Text: policyOf(allow("s3:*", "*"))})
	want(t, err, nil)
	want(t, d.Attach(bg, bob, "m"), nil)
	want(t, d.SetBoundary(bg, bob, "m"), nil)
	before := c.as("bob")
	_, err = c.fs.HeadObject(before, ObjectName{"bkt", "k"}, GetOptions{})
	want(t, err, nil)
	want(t, c.fs.Users().Remove(bg, "bob"), nil)
	_, err = c.fs.HeadObject(before, ObjectName{"bkt", "k"}, GetOptions{})
	want(t, err, ErrAccess)
	_, err = c.fs.Users().Make(bg, users.User{Name: "bob"}, users.Options{FreeUID: true})
	want(t, err, nil)
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
	if _, members, err := d.Group(bg, "g"); err != nil || len(members) > 0 {
		t.Error(members, err)
	}
	want(t, d.DeleteGroup(bg, "g"), nil)
	want(t, d.DeletePolicy(bg, "m"), nil)
}

// TestIdentityPolicyCosts: to decide by a cached set allocates what the names of
// bucket and key take, and nothing more with more policies.
func TestIdentityPolicyCosts(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	allocs := func() float64 {
		want(t, c.reads("bob", "bkt", "k"), nil)
		ctx := c.as("bob")
		return testing.AllocsPerRun(100, func() { c.fs.HeadObject(ctx, ObjectName{"bkt", "k"}, GetOptions{}) })
	}
	c.inline(bob, allow("s3:GetObject", rights.ARNPrefix+"bkt/*"))
	one := allocs()
	for i := range 15 {
		want(t, c.fs.IAM().PutInline(bg, bob, fmt.Sprint("p", i), policyOf(allow("s3:X", "*"))), nil)
	}
	if many := allocs(); many > one {
		t.Errorf("%v allocations with one policy, %v with 16", one, many)
	}
}

// BenchmarkIdentityPolicy heads an object as a user without, with one policy, and in a
// store where others have policies.
func BenchmarkIdentityPolicy(b *testing.B) {
	for _, with := range []string{"nobody", "others", "user"} {
		b.Run(with, func(b *testing.B) {
			fs := openTest(b, mem.New(mem.Options{}))
			u, err := fs.Users().Make(bg, users.User{Name: "bob"}, users.Options{FreeUID: true})
			want(b, err, nil)
			_, err = fs.Users().Make(bg, users.User{Name: "others"}, users.Options{FreeUID: true})
			want(b, err, nil)
			s := &Subject{User: u.ID, Name: u.Name, UID: u.UID, GID: u.GID}
			_, err = fs.CreateBucket(bg, "bkt", NewCred(u.UID, u.GID))
			want(b, err, nil)
			want(b, putAs(fs, s, "bkt", "k", nil), nil)
			if with != "nobody" {
				name := map[string]string{"others": "others", "user": "bob"}[with]
				want(b, fs.IAM().PutInline(bg, iam.Holder{Kind: iam.User, Name: name}, "p", policyOf(allow("s3:GetObject", rights.ARNPrefix+"bkt/*"))), nil)
			}
			ctx := WithSubject(context.Background(), s)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fs.HeadObject(ctx, ObjectName{"bkt", "k"}, GetOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
