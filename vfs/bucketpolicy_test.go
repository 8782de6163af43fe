package vfs

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/format"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// asking is as for an action that policies call name.
func (c *cast) asking(name string, act Action, action string, keys keyValues) context.Context {
	s := *c.subject(name)
	s.Call = &Call{Act: act, Action: action, Values: keys}
	return WithSubject(bg, &s)
}

type keyValues map[string][]string

func (v keyValues) Value(key string) ([]string, bool) {
	x, ok := v[key]
	return x, ok
}

// bucketOf makes a bucket of alice's with an object.
func (c *cast) bucketOf(name string, keys ...string) {
	c.t.Helper()
	_, err := c.fs.CreateBucket(bg, name, c.cred("alice"))
	want(c.t, err, nil)
	for _, key := range keys {
		want(c.t, putAs(c.fs, c.subject("alice"), name, key, nil), nil)
	}
}

// statement is one about bob.
func statement(effect, action, resource string, more ...string) string {
	s := `{"Effect":"` + effect + `","Principal":{"AWS":"arn:aws:iam:::user/bob"},"Action":"` + action + `","Resource":"arn:aws:s3:::` + resource + `"`
	return s + strings.Join(more, "") + "}"
}

func policyOf(statements ...string) []byte {
	return []byte(`{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`)
}

func (c *cast) reads(who, bucket, key string) error {
	_, err := c.fs.HeadObject(c.as(who), ObjectName{bucket, key}, GetOptions{})
	return err
}

func TestPolicyOfBucket(t *testing.T) {
	c := newCast(t)
	fs := c.fs
	c.bucketOf("bkt", "open/k", "closed/k")
	set := func(who string, text []byte) error { return fs.SetBucketPolicy(c.as(who), "bkt", text) }
	want(t, set("bob", policyOf(statement("Allow", "s3:GetObject", "bkt/*"))), ErrAccess)
	want(t, set("alice", policyOf(statement("Allow", "s3:GetObject", "bkt/open/*"), statement("Deny", "s3:*", "bkt/closed/*"))), nil)
	want(t, c.reads("bob", "bkt", "open/k"), nil)
	want(t, c.reads("bob", "bkt", "closed/k"), ErrAccess)
	want(t, c.reads("stranger", "bkt", "open/k"), ErrAccess)
	want(t, c.reads("alice", "bkt", "closed/k"), nil)
	text, public, err := fs.BucketPolicy(c.as("alice"), "bkt")
	bob, _ := fs.Users().ByName(bg, "bob")
	if err != nil || public || !strings.Contains(string(text), `"`+users.ARN(bob.UID, "bob")+`"`) {
		t.Errorf("%s %v %v", text, public, err)
	}
	// What denies its owner everything can be taken back.
	want(t, set("alice", policyOf(`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"]}`)), nil)
	want(t, c.reads("alice", "bkt", "open/k"), ErrAccess)
	want(t, c.reads("administrator", "bkt", "open/k"), nil)
	_, err = fs.BucketConfig(c.asking("alice", ActConfigureBucket, "s3:GetBucketTagging", nil), "bkt", "tagging")
	want(t, err, ErrAccess)
	take := func(ctx context.Context) error { return fs.SetBucketPolicy(ctx, "bkt", nil) }
	want(t, take(c.asking("bob", ActConfigureBucket, "s3:DeleteBucketPolicy", nil)), ErrAccess)
	want(t, take(c.asking("alice", ActConfigureBucket, "s3:DeleteBucketPolicy", nil)), nil)
	want(t, take(c.as("alice")), nil)
	want(t, c.reads("alice", "bkt", "open/k"), nil)
	if text, _, err := fs.BucketPolicy(c.as("alice"), "bkt"); text != nil || err != nil {
		t.Errorf("after it was removed: %s %v", text, err)
	}
	noFindings(t, fs)
}

// noFindings runs Check.
func noFindings(t *testing.T, fs *FS) {
	t.Helper()
	r, err := fs.Check(bg, CheckOptions{})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("check: %+v %v", r.Problems, err)
	}
}

// TestPolicyNamesIDs: nothing passes with a name, and a bucket keeps its policy under
// another one.
func TestPolicyNamesIDs(t *testing.T) {
	c := newCast(t)
	fs := c.fs
	c.bucketOf("bkt", "k")
	bob, err := fs.Users().ByName(bg, "bob")
	want(t, err, nil)
	want(t, fs.SetBucketPolicy(c.as("alice"), "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/k"), statement("Deny", "s3:PutObject", "bkt/*"))), nil)
	_, err = fs.Users().Rename(bg, "bob", "robert")
	want(t, err, nil)
	want(t, c.reads("robert", "bkt", "k"), nil)
	text, _, _ := fs.BucketPolicy(bg, "bkt")
	if !strings.Contains(string(text), ":user/robert") {
		t.Errorf("renamed: %s", text)
	}
	want(t, fs.Users().Remove(bg, "robert"), nil)
	_, err = fs.Users().Make(bg, users.User{Name: "bob", UID: bob.UID, GID: bob.UID}, users.Options{Inherit: true})
	want(t, err, nil)
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
	text, _, _ = fs.BucketPolicy(bg, "bkt")
	if !strings.Contains(string(text), string(bob.ID)) {
		t.Errorf("removed: %s", text)
	}
	var bad *policy.Error
	if err := fs.SetBucketPolicy(c.as("alice"), "bkt", text); !errors.As(err, &bad) || bad.Message != "Invalid principal in policy" {
		t.Errorf("a policy for one who was removed: %v", err)
	}
	for _, name := range []string{"bob", "arn:aws:iam::999999999999:user/bob", "arn:aws:iam:::user/nobody", "arn:aws:iam::000000000001:root", "arn:aws:iam:::role/r", "000000000001", "arn:aws:s3:::x", string(bob.ID)} {
		s := strings.Replace(statement("Allow", "s3:GetObject", "bkt/k"), "arn:aws:iam:::user/bob", name, 1)
		if err := fs.SetBucketPolicy(c.as("alice"), "bkt", policyOf(s)); !errors.As(err, &bad) || bad.Detail != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	again, err := fs.Users().ByName(bg, "bob")
	want(t, err, nil)
	for _, name := range []string{string(again.ID), users.AccountNumber(again.UID), "arn:aws:iam::" + users.AccountNumber(again.UID) + ":root", users.ARN(again.UID, "bob")} {
		s := strings.Replace(statement("Allow", "s3:GetObject", "bkt/k"), "arn:aws:iam:::user/bob", name, 1)
		want(t, fs.SetBucketPolicy(c.as("alice"), "bkt", policyOf(s, statement("Deny", "s3:DeleteObject", "bkt/*"))), nil)
		want(t, c.reads("bob", "bkt", "k"), nil)
	}
	want(t, fs.SetBucketGrants(bg, "bkt", Grants{{Grantee: GranteeEverybody, Permission: PermWrite}}), nil)
	want(t, fs.Rename(bg, Root, EntryName{RootIno, "bkt"}, EntryName{RootIno, "other"}, 0), nil)
	want(t, c.reads("bob", "other", "k"), nil)
	_, err = fs.DeleteObject(c.as("bob"), ObjectName{"other", "k"}, DeleteOptions{})
	want(t, err, ErrAccess)
	noFindings(t, fs)
}

// TestPolicyInFlight: what is revoked while a body arrives publishes nothing.
func TestPolicyInFlight(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt")
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:PutObject", "bkt/*"))), nil)
	body := io.MultiReader(strings.NewReader("a"), readerFunc(func([]byte) (int, error) {
		want(t, c.fs.SetBucketPolicy(bg, "bkt", nil), nil)
		return 0, io.EOF
	}))
	_, err := c.fs.PutObject(c.as("bob"), ObjectName{"bkt", "k"}, body, PutOptions{Size: -1})
	want(t, err, ErrAccess)
	_, err = c.fs.HeadObject(bg, ObjectName{"bkt", "k"}, GetOptions{})
	want(t, err, ErrNoSuchKey)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPolicyAndLinks: a link does not lead out of, or into, what a policy says of keys.
func TestPolicyAndLinks(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "open/k", "closed/k")
	open, err := c.fs.Resolve(bg, Root, "bkt/open", true)
	want(t, err, nil)
	for name, target := range map[string]string{"out": "../closed/k", "in": "k", "around": "../open/../closed/./k"} {
		_, err = c.fs.Symlink(bg, Root, open.Ino, name, target)
		want(t, err, nil)
	}
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/open/*"))), nil)
	want(t, c.reads("bob", "bkt", "open/in"), nil)
	for _, via := range []string{"open/out", "open/around"} {
		want(t, c.reads("bob", "bkt", via), ErrAccess)
		want(t, c.reads("bob", "", "bkt/"+via), ErrAccess)
	}
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/*"), statement("Deny", "s3:GetObject", "bkt/closed/*"))), nil)
	want(t, c.reads("bob", "bkt", "open/out"), ErrAccess)
	want(t, c.reads("bob", "", "bkt/open/in"), nil)
}

func TestPolicyOfManyKeys(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "a/1", "a/2", "a/3", "b/1")
	text := policyOf(statement("Allow", "s3:DeleteObject", "bkt/a/*"), statement("Deny", "s3:DeleteObject", "bkt/a/2"))
	want(t, c.fs.SetBucketPolicy(bg, "bkt", text), nil)
	results, err := c.fs.DeleteObjects(c.as("bob"), "bkt", []string{"a/1", "a/2", "a/3", "b/1", "b/none"})
	want(t, err, nil)
	for i, expect := range []error{nil, ErrAccess, nil, ErrAccess, ErrAccess} {
		want(t, results[i].Err, expect)
	}
	for key, expect := range map[string]error{"a/1": ErrNoSuchKey, "a/2": nil, "a/3": ErrNoSuchKey, "b/1": nil} {
		_, err := c.fs.HeadObject(bg, ObjectName{"bkt", key}, GetOptions{})
		want(t, err, expect)
	}
	if _, err := c.fs.Authorize(c.as("bob"), ActDeleteObject, ObjectName{"bkt", ""}); err != nil {
		t.Errorf("keys that are not known yet: %v", err)
	}
}

func TestPolicyOfWhatComesWithAnObject(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt")
	public := Grants{{Grantee: GranteeEverybody, Permission: PermRead}}
	tagged := ObjectMeta{}
	tagged.SetTags("a=b")
	putMeta := func(m ObjectMeta) error {
		_, err := c.fs.PutObject(c.as("bob"), ObjectName{"bkt", "k"}, strings.NewReader("x"), PutOptions{Size: 1, Meta: m})
		return err
	}
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:PutObject", "bkt/*"))), nil)
	want(t, putMeta(ObjectMeta{}), nil)
	want(t, putMeta(ObjectMeta{Grants: public}), ErrAccess)
	want(t, putMeta(tagged), ErrAccess)
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:PutObject*", "bkt/*"))), nil)
	want(t, putMeta(ObjectMeta{Grants: public}), nil)
	want(t, putMeta(tagged), nil)
	// The object's tags decide, whatever case they are asked for in.
	cond := `,"Condition":{"StringEquals":{"s3:ExistingObjectTag/A":"b"}}`
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Deny", "s3:GetObject", "bkt/*", cond))), nil)
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
	want(t, c.fs.SetObjectTags(bg, ObjectName{"bkt", "k"}, "a=c"), nil)
	want(t, c.reads("bob", "bkt", "k"), nil)
}

func TestPolicyOfLists(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "home/bob/k")
	text := policyOf(statement("Allow", "s3:ListBucket", "bkt", `,"Condition":{"StringLike":{"s3:prefix":"home/${aws:username}/*"}}`))
	want(t, c.fs.SetBucketPolicy(bg, "bkt", text), nil)
	lists := func(bucket, prefix string) error {
		_, err := c.fs.ListObjects(c.as("bob"), bucket, ListOptions{Prefix: prefix, MaxKeys: 10})
		return err
	}
	want(t, lists("bkt", "home/bob/"), nil)
	want(t, lists("bkt", "home/alice/"), ErrAccess)
	want(t, lists("bkt", ""), ErrAccess)
	want(t, c.reads("bob", "bkt", "none"), ErrAccess)
}

func TestPolicyOfUploads(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt")
	u, err := c.fs.CreateUpload(c.as("alice"), ObjectName{"bkt", "k"}, PutOptions{Size: -1}, "", false)
	want(t, err, nil)
	listed := func() int {
		page, err := c.fs.ListUploads(c.asking("bob", ActListObjects, "s3:ListBucketMultipartUploads", nil), "bkt", ListUploadsOptions{MaxUploads: 10})
		if err != nil {
			return -1
		}
		return len(page.Uploads)
	}
	abort := func() error {
		return c.fs.AbortUpload(c.asking("bob", ActOwnUpload, "s3:AbortMultipartUpload", nil), ObjectName{"bkt", "k"}.Upload(u.ID))
	}
	want(t, abort(), ErrAccess)
	if n := listed(); n != -1 {
		t.Errorf("%d uploads without the right to list", n)
	}
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:ListBucketMultipartUploads", "bkt"), statement("Allow", "s3:AbortMultipartUpload", "bkt/k"))), nil)
	if n := listed(); n != 1 {
		t.Errorf("%d uploads", n)
	}
	_, err = c.fs.PutPart(c.as("bob"), ObjectName{"bkt", "k"}.Upload(u.ID), 1, strings.NewReader("x"), PutOptions{Size: 1})
	want(t, err, ErrAccess)
	want(t, abort(), nil)
}

func TestPolicyAndAccessBlock(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	block := func(b AccessBlock) {
		want(t, c.fs.SetBucketConfig(bg, "bkt", AccessBlockConfig, []byte{byte(b)}), nil)
	}
	everybody := policyOf(`{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/*"}`)
	block(BlockPublicPolicies)
	for _, who := range []string{"alice", "administrator"} {
		want(t, c.fs.SetBucketPolicy(c.as(who), "bkt", everybody), ErrAccess)
		want(t, c.fs.SetBucketPolicy(c.as(who), "bkt", policyOf(statement("Allow", "s3:GetObject", "bkt/*"))), nil)
	}
	block(0)
	want(t, c.fs.SetBucketPolicy(c.as("alice"), "bkt", everybody), nil)
	want(t, c.reads("stranger", "bkt", "k"), nil)
	block(RestrictPublicBuckets)
	want(t, c.reads("stranger", "bkt", "k"), ErrAccess)
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
	want(t, c.reads("alice", "bkt", "k"), nil)
	_, public, err := c.fs.BucketPolicy(c.as("alice"), "bkt")
	if !public || err != nil {
		t.Errorf("public %v, %v", public, err)
	}
}

// TestPolicyGoesWithBucket: the next bucket of the name has none.
func TestPolicyGoesWithBucket(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt")
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:*", "bkt/*"))), nil)
	want(t, c.fs.DeleteBucket(bg, "bkt"), nil)
	c.bucketOf("bkt", "k")
	want(t, c.reads("bob", "bkt", "k"), ErrAccess)
	want(t, c.fs.view(bg, func(r cluster.Reader) error {
		from, to := record.Table(record.TabPolicy)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, _ []byte) error {
			t.Errorf("left: %x", k)
			return nil
		})
	}), nil)
}

// TestPolicyDamaged: what cannot be read opens nothing, and an administrator can
// replace it.
func TestPolicyDamaged(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:*", "bkt/*"))), nil)
	info, err := c.fs.HeadBucket(bg, "bkt")
	want(t, err, nil)
	for _, damage := range [][]byte{nil, {9}, {1, 3, 'b', 'k', 't', 1, '{'}} {
		u := &c.fs.rights
		c.fs.rights = rights.Rules{Users: u.Users, IAM: u.IAM, Now: u.Now, FileMode: u.FileMode, DirMode: u.DirMode} // nothing compiled
		want(t, c.fs.kv.Update(bg, func(txn cluster.Txn) error {
			if damage == nil {
				return txn.Delete(record.PolicyKey(info.Ino))
			}
			return txn.Set(record.PolicyKey(info.Ino), damage)
		}), nil)
		want(t, c.reads("bob", "bkt", "k"), ErrCorrupt)
		want(t, c.reads("alice", "bkt", "k"), ErrCorrupt)
		want(t, c.fs.SetBucketPolicy(c.as("administrator"), "bkt", policyOf(statement("Allow", "s3:*", "bkt/*"))), nil)
		want(t, c.reads("bob", "bkt", "k"), nil)
	}
}

// TestPolicyDigestDamaged: attributes that name no policy open nothing either.
func TestPolicyDigestDamaged(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:*", "bkt/*"))), nil)
	want(t, c.fs.SetBucketAttr(bg, "bkt", record.PolicyAttr, []byte("short")), nil)
	want(t, c.reads("bob", "bkt", "k"), ErrCorrupt)
}

// TestPolicyTellsStatement: who reads the log learns which statement it was.
func TestPolicyTellsStatement(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "k")
	want(t, c.fs.SetBucketPolicy(bg, "bkt", policyOf(statement("Allow", "s3:*", "bkt/*"), statement("Deny", "s3:GetObject", "bkt/*", `,"Sid":"closed"`))), nil)
	if err := c.reads("bob", "bkt", "k"); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), `statement 2 "closed" of the bucket's policy denies s3:GetObject`) {
		t.Error(err)
	}
}

// TestFormat2: a store of before policies is opened, and older programs keep away
// after that.
func TestFormat2(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	stored := func(change func(*record.Superblock)) (s record.Superblock) {
		want(t, fs.kv.Update(bg, func(txn cluster.Txn) error {
			b, err := txn.Get(record.SuperKey())
			if err != nil {
				return err
			}
			if s, err = record.DecodeSuper(b); err != nil {
				return err
			}
			change(&s)
			return txn.Set(record.SuperKey(), s.Encode())
		}), nil)
		return s
	}
	stored(func(s *record.Superblock) { s.Version = 2 })
	_, err := format.Open(bg, fs.kv, fs.formatOptions())
	want(t, err, nil)
	if s := stored(func(*record.Superblock) {}); s.Version != FormatVersion {
		t.Errorf("version %d", s.Version)
	}
	want(t, fs.view(bg, func(r cluster.Reader) error {
		if b, err := r.Get(record.ConversionKey()); b != nil || err != nil {
			t.Errorf("a conversion began: %x %v", b, err)
		}
		return nil
	}), nil)
	noFindings(t, fs)
}
