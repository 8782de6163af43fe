package vfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/users"
)

// The tables of docs/security.md, "Who may do what", run row by row.

// docTables returns the rows of the tables of a section, without their heads.
func docTables(t *testing.T, file, section string) [][][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var tables [][][]string
	inside := false
	for line := range strings.SplitSeq(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		if !inside {
			tables, inside = append(tables, nil), true
		}
		var cells []string
		for c := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		last := len(tables) - 1
		tables[last] = append(tables[last], cells)
	}
	for i := range tables {
		tables[i] = tables[i][2:]
	}
	return tables
}

// cast are the people of the document.
type cast struct {
	t  *testing.T
	fs *FS
}

func newCast(t *testing.T) *cast {
	c := &cast{t, openTest(t, mem.New(mem.Options{}))}
	for name, admin := range map[string]bool{"alice": false, "bob": false, "administrator": true} {
		_, err := c.fs.Users().Make(bg, users.User{Name: name, Admin: admin}, users.Options{FreeUID: true})
		want(t, err, nil)
	}
	return c
}

// subject is who the document calls name.
func (c *cast) subject(name string) *Subject {
	c.t.Helper()
	if name == "stranger" {
		return Nobody
	}
	account, local := strings.CutPrefix(name, "local ")
	u, err := c.fs.Users().ByName(bg, account)
	want(c.t, err, nil)
	if local {
		return &Subject{UID: u.UID, GID: u.GID, Local: true}
	}
	return &Subject{User: u.ID, Name: u.Name, UID: u.UID, GID: u.GID, Admin: u.Admin}
}

func (c *cast) cred(name string) *Cred {
	s := c.subject(name)
	return CheckedCred(s.UID, s.GID)
}

// grants reads such as "READ and WRITE to bob".
func (c *cast) grants(text string) Grants {
	c.t.Helper()
	if text == "private" || text == "" {
		return nil
	}
	what, who, ok := strings.Cut(text, " to ")
	if !ok {
		c.t.Fatalf("no grant: %q", text)
	}
	var g Grants
	for p := range strings.SplitSeq(what, " and ") {
		x := Grant{Permission: map[string]Permission{"READ": PermRead, "WRITE": PermWrite, "READ_ACP": PermReadACP,
			"WRITE_ACP": PermWriteACP, "FULL": PermFullControl}[p]}
		switch who {
		case "all":
			x.Grantee = GranteeEverybody
		case "users":
			x.Grantee = GranteeAuthenticated
		default:
			x.Grantee, x.User = GranteeUser, c.subject(who).User
		}
		g = append(g, x)
	}
	return g
}

// ownerAndMode reads such as "alice 0755".
func (c *cast) ownerAndMode(text string) (*Cred, uint32) {
	c.t.Helper()
	name, octal, ok := strings.Cut(text, " ")
	mode, err := strconv.ParseUint(octal, 8, 32)
	if !ok || err != nil {
		c.t.Fatalf("no owner and mode: %q", text)
	}
	return c.cred(name), uint32(mode)
}

// yes reads an answer of the document.
func (c *cast) yes(text string) bool {
	c.t.Helper()
	if text != "yes" && text != "no" {
		c.t.Fatalf("no answer: %q", text)
	}
	return text == "yes"
}

// allowed reports whether err is success and not a denial; others fail.
func (c *cast) allowed(err error) bool {
	c.t.Helper()
	if err != nil && !errors.Is(err, ErrAccess) && !errors.Is(err, ErrPerm) {
		c.t.Fatal(err)
	}
	return err == nil
}

func TestDocumentedRights(t *testing.T) {
	tables := docTables(t, "../docs/security.md", "Who may do what")
	if len(tables) != 2 || len(tables[0]) < 10 || len(tables[1]) < 10 {
		t.Fatalf("%d tables", len(tables))
	}
	c := newCast(t)
	for i, row := range tables[0] {
		t.Run(fmt.Sprintf("rights %d", i+1), func(t *testing.T) { (&cast{t, c.fs}).rightsRow(fmt.Sprint("rights-", i), row) })
	}
	for i, row := range tables[1] {
		t.Run(fmt.Sprintf("acts %d", i+1), func(t *testing.T) { newCast(t).actsRow(row) })
	}
}

// rightsRow runs a row of the first table.
func (c *cast) rightsRow(bucket string, row []string) {
	act := func(name string, do func(*Subject) error, answer string) {
		c.t.Helper()
		c.rightsWorld(bucket, row)
		if got := c.allowed(do(c.subject(row[3]))); got != c.yes(answer) {
			c.t.Errorf("%s %s: %v\n%q", row[3], name, got, row)
		}
	}
	act("reads", func(s *Subject) error {
		_, err := readBody(c.fs, s, bucket, "dir/key")
		return err
	}, row[4])
	act("overwrites", func(s *Subject) error { return putAs(c.fs, s, bucket, "dir/key", nil) }, row[5])
	act("deletes", func(s *Subject) error {
		_, err := c.fs.DeleteObject(WithSubject(bg, s), ObjectName{bucket, "dir/key"}, DeleteOptions{})
		many, manyErr := c.fs.DeleteObjects(WithSubject(bg, s), bucket, []string{"dir/key"})
		if err == nil {
			return nil
		}
		if manyErr == nil {
			manyErr = many[0].Err
		}
		if c.allowed(manyErr) {
			c.t.Errorf("%s deletes many, and must not delete one\n%q", row[3], row)
		}
		return err
	}, row[6])
	act("is shown", func(s *Subject) error {
		page, err := c.fs.ListObjects(WithSubject(bg, s), bucket, ListOptions{MaxKeys: MaxListKeys})
		if err == nil && !slices.ContainsFunc(page.Objects, func(o ObjectInfo) bool { return o.Key == "dir/key" }) {
			err = ErrAccess
		}
		return err
	}, row[7])
}

// rightsWorld makes what a row of the first table describes anew.
func (c *cast) rightsWorld(bucket string, row []string) {
	c.t.Helper()
	_, err := c.fs.DeleteObjects(bg, bucket, []string{"dir/key", "dir/"})
	if !errors.Is(err, ErrNoSuchBucket) {
		want(c.t, err, nil)
		want(c.t, c.fs.DeleteBucket(bg, bucket), nil)
	}
	info, err := c.fs.CreateBucketWith(bg, bucket, c.cred("alice"), BucketOptions{Grants: c.grants(row[0])})
	want(c.t, err, nil)
	if row[1] != "implied" {
		cred, mode := c.ownerAndMode(row[1])
		_, err := c.fs.Mkdir(bg, cred, info.Ino, "dir", mode)
		want(c.t, err, nil)
	}
	door, text, _ := strings.Cut(row[2], ", ")
	if door == "S3" {
		owner, acl, _ := strings.Cut(text, ", ")
		_, err := c.fs.PutObject(bg, ObjectName{bucket, "dir/key"}, strings.NewReader("v"),
			PutOptions{Size: -1, Owner: c.cred(owner), Meta: ObjectMeta{Grants: c.grants(acl)}})
		want(c.t, err, nil)
		return
	}
	if row[1] == "implied" { // something else implied it
		_, err := c.fs.PutObject(bg, ObjectName{bucket, "dir/key"}, strings.NewReader(""), PutOptions{Owner: c.cred("alice")})
		want(c.t, err, nil)
	}
	dir := mustLookup(c.t, c.fs, info.Ino, "dir").Ino
	if row[1] == "implied" {
		want(c.t, c.fs.Rename(bg, Root, EntryName{dir, "key"}, EntryName{dir, "other"}, 0), nil)
	}
	cred, mode := c.ownerAndMode(text)
	_, _, _, err = c.fs.Create(bg, cred, dir, "key", CreateOptions{Mode: mode, NoOpen: true})
	want(c.t, err, nil)
	if row[1] == "implied" {
		_, err := c.fs.DeleteObject(bg, ObjectName{bucket, "dir/other"}, DeleteOptions{})
		want(c.t, err, nil)
	}
}

func putAs(fs *FS, s *Subject, bucket, key string, g Grants) error {
	_, err := fs.PutObject(WithSubject(bg, s), ObjectName{bucket, key}, strings.NewReader("w"), PutOptions{Size: 1, Meta: ObjectMeta{Grants: g}})
	return err
}

func readBody(fs *FS, s *Subject, bucket, key string) (int64, error) {
	o, err := fs.GetObject(WithSubject(bg, s), ObjectName{bucket, key}, GetOptions{})
	if err != nil {
		return 0, err
	}
	return o.Info.Size, o.Close()
}

// story is a row of the second table: an object and what happens to it.
type story struct {
	*cast
	bucket Ino
	key    string
}

func (c *cast) actsRow(row []string) {
	info, err := c.fs.CreateBucketWith(bg, "acts", c.cred("alice"), BucketOptions{Grants: c.grants("READ and WRITE to bob")})
	want(c.t, err, nil)
	st := &story{c, info.Ino, "key"}
	for act := range strings.SplitSeq(row[0], "; ") {
		st.act(act)
	}
	n := mustLookup(c.t, c.fs, st.bucket, st.key)
	owner := "removed"
	if u, err := c.fs.Users().ByUID(bg, n.UID); err == nil {
		owner = u.Name
	}
	if owner != row[1] {
		c.t.Errorf("it is owned by %s, not %s\n%q", owner, row[1], row)
	}
	for i, who := range []string{"alice", "bob", "stranger"} {
		if who == "bob" && strings.Contains(row[0], "bob is renamed") {
			who = "robert"
		}
		_, err := readBody(c.fs, c.subject(who), "acts", st.key)
		if got := c.allowed(err); got != c.yes(row[2+i]) {
			c.t.Errorf("%s reads: %v (%v)\n%q", who, got, err, row)
		}
	}
}

// act does one act of the document.
func (st *story) act(text string) {
	st.t.Helper()
	act, acl, _ := strings.Cut(text, ", ")
	if rest, ok := strings.CutPrefix(act, "NFS: "); ok {
		st.nfs(rest)
		return
	}
	who, what, _ := strings.Cut(act, " ")
	if what, list, ok := strings.Cut(what, ": "); ok && what == "sets its ACL" {
		want(st.t, st.fs.SetObjectGrants(st.as(who), ObjectName{"acts", st.key}, st.grants(list)), nil)
		return
	}
	switch {
	case what == "puts it":
		want(st.t, putAs(st.fs, st.subject(who), "acts", st.key, st.grants(acl)), nil)
	case what == "copies it":
		_, err := st.fs.CopyObject(st.as(who), ObjectName{"acts", st.key}, ObjectName{"acts", "copy"}, CopyOptions{})
		want(st.t, err, nil)
		st.key = "copy"
	case what == "uploads it in parts":
		st.upload(who)
	case what == "sets the bucket's ACL":
		want(st.t, st.fs.SetBucketGrants(st.as(who), "acts", st.grants("READ and WRITE to bob")), nil)
	case what == "is renamed":
		_, err := st.fs.Users().Rename(bg, who, "robert")
		want(st.t, err, nil)
	case what == "is removed":
		want(st.t, st.fs.Users().Remove(bg, who), nil)
	case act == "another bob is added":
		_, err := st.fs.Users().Make(bg, users.User{Name: "bob"}, users.Options{FreeUID: true})
		want(st.t, err, nil)
	case act == "another bob inherits the uid":
		uid := mustLookup(st.t, st.fs, st.bucket, st.key).UID
		_, err := st.fs.Users().Make(bg, users.User{Name: "bob", UID: uid, GID: uid}, users.Options{Inherit: true})
		want(st.t, err, nil)
	default:
		st.t.Fatalf("no such act: %q", text)
	}
}

// upload replaces the object by an upload of one part.
func (st *story) upload(who string) {
	st.t.Helper()
	ctx := st.as(who)
	up, err := st.fs.CreateUpload(ctx, ObjectName{"acts", st.key}, PutOptions{}, "", false)
	want(st.t, err, nil)
	part, err := st.fs.PutPart(ctx, ObjectName{"acts", st.key}.Upload(up.ID), 1, strings.NewReader("part"), PutOptions{Size: 4})
	want(st.t, err, nil)
	_, err = st.fs.CompleteUpload(ctx, ObjectName{"acts", st.key}.Upload(up.ID), CompleteOptions{Parts: []CompletePart{{Number: 1, ETag: part.ETag}}})
	want(st.t, err, nil)
}

// nfs does an act of a POSIX door, as root there.
func (st *story) nfs(act string) {
	st.t.Helper()
	ino := st.bucket
	act, ofBucket := strings.CutSuffix(act, " of the bucket")
	if !ofBucket {
		ino = mustLookup(st.t, st.fs, st.bucket, st.key).Ino
	}
	what, arg, _ := strings.Cut(act, " ")
	switch what {
	case "chmod":
		mode, err := strconv.ParseUint(arg, 8, 32)
		want(st.t, err, nil)
		perm := uint32(mode)
		_, err = st.fs.SetAttr(bg, Root, ino, SetAttr{Mode: &perm})
		want(st.t, err, nil)
	case "chown":
		uid := st.subject(arg).UID
		_, err := st.fs.SetAttr(bg, Root, ino, SetAttr{UID: &uid, GID: &uid})
		want(st.t, err, nil)
	case "write":
		f, err := st.fs.Open(bg, Root, ino, OpenWrite)
		want(st.t, err, nil)
		_, err = f.WriteAt(bg, []byte("posix"), 0)
		want(st.t, err, nil)
		want(st.t, f.Close(bg), nil)
	case "truncate":
		size := int64(0)
		_, err := st.fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
		want(st.t, err, nil)
	case "rename":
		want(st.t, st.fs.Rename(bg, Root, EntryName{st.bucket, st.key}, EntryName{st.bucket, "renamed"}, 0), nil)
		st.key = "renamed"
	default:
		st.t.Fatalf("no such act over NFS: %q", act)
	}
}

// as is a context of who the document calls name.
func (c *cast) as(name string) context.Context { return WithSubject(bg, c.subject(name)) }
