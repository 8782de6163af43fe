package vfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/rights"
)

// The rights compared with a second, naive evaluator: it knows the world as the
// test made it, with who chose what written down, and neither flags nor entries.

// thing is a bucket, a directory or a file as the test made it.
type thing struct {
	uid, gid uint32
	mode     uint32 // nine bits
	chosen   bool
	bob      int    // what a POSIX ACL gives to bob, within the mask (the mode's group bits); -1: there is none
	group    uint32 // what it gives to the group
	grants   Grants
}

// world is one way from a bucket to a key.
type world struct {
	bucket thing
	dirs   []thing // d0/d1/…
	block  bool    // the bucket ignores grants that are public
	policy modelPolicy
	file   *thing // nil: missing
}

const (
	aliceUID = 1001 // and gid
	bobUID   = 1002
	carolUID = 1003
	staffGID = 2000
)

var modelSubjects = map[string]*Subject{
	"alice":       {User: "alice", UID: aliceUID, GID: aliceUID},
	"bob":         {User: "bob", UID: bobUID, GID: bobUID},
	"carol":       {User: "carol", UID: carolUID, GID: carolUID, Groups: []uint32{staffGID}},
	"admin":       {User: "admin", UID: 1000, GID: 1000, Admin: true},
	"anonymous":   Nobody,
	"local bob":   {UID: bobUID, GID: bobUID, Local: true},
	"local carol": {UID: carolUID, GID: carolUID, Groups: []uint32{staffGID}, Local: true},
	"local root":  {Local: true},
}

// posix is what the mode of x gives to s.
func (x *thing) posix(s *Subject) uint32 {
	inGroup := s.GID == x.gid || slices.Contains(s.Groups, x.gid)
	switch {
	case s.UID == 0:
		return 7
	case s.UID == x.uid:
		return x.mode >> 6 & 7
	case x.bob >= 0 && s.UID == bobUID:
		return uint32(x.bob) & (x.mode >> 3)
	case inGroup && x.bob >= 0:
		return x.group & (x.mode >> 3)
	case inGroup:
		return x.mode >> 3 & 7
	}
	return x.mode & 7
}

func (x *thing) denies(s *Subject, mask uint32) bool {
	return (x.chosen || s.Local) && mask&^x.posix(s) != 0
}

func (x *thing) ownedBy(s *Subject) bool { return !rights.Anonymous(s) && s.UID == x.uid }

func (w *world) grantsTo(x *thing, s *Subject, p Permission) bool {
	for _, g := range x.grants {
		if w.block && g.Grantee != GranteeUser {
			continue
		}
		who := g.Grantee == GranteeEverybody || g.Grantee == GranteeAuthenticated && !rights.Anonymous(s) ||
			g.Grantee == GranteeUser && !rights.Anonymous(s) && g.User == s.User
		if who && (g.Permission == p || g.Permission == PermFullControl) {
			return true
		}
	}
	return false
}

// way reports whether s may go to the directory of the key.
func (w *world) way(s *Subject) bool {
	for _, d := range append([]thing{w.bucket}, w.dirs...) {
		if d.denies(s, AccessExec) {
			return false
		}
	}
	return true
}

func (w *world) onBucket(s *Subject, p Permission, act Action) bool {
	return s.Local || w.policy.gives(w, s, act, w.bucket.ownedBy(s) || w.grantsTo(&w.bucket, s, p))
}

func (w *world) onObject(s *Subject, p Permission, act Action) bool {
	return s.Local || w.policy.gives(w, s, act, w.bucket.ownedBy(s) || w.file.ownedBy(s) || w.grantsTo(w.file, s, p))
}

// may is the naive answer: nil, ErrAccess (ErrPerm too), ErrNoSuchKey.
func (w *world) may(s *Subject, act Action) error {
	yes := func(ok bool) error {
		if ok {
			return nil
		}
		return ErrAccess
	}
	last := &w.bucket
	if len(w.dirs) > 0 {
		last = &w.dirs[len(w.dirs)-1]
	}
	switch {
	case act == ActWriteObject && w.file == nil:
		return yes(s.Admin || w.onBucket(s, PermWrite, act) && w.way(s) && !last.denies(s, AccessWrite|AccessExec))
	case act == ActWriteObject:
		return yes(s.Admin || w.onBucket(s, PermWrite, act) && w.way(s) && !w.file.denies(s, AccessWrite))
	case act == ActDeleteObject && w.file == nil:
		return yes(s.Admin || w.onBucket(s, PermWrite, act) && w.way(s))
	case act == ActDeleteObject:
		return yes(s.Admin || w.onBucket(s, PermWrite, act) && w.way(s) && !last.denies(s, AccessWrite|AccessExec))
	case w.file == nil && (s.Admin || w.way(s) && w.onBucket(s, PermRead, ActListObjects)):
		return ErrNoSuchKey
	case w.file == nil:
		return ErrAccess
	case act == ActReadObject:
		return yes(s.Admin || w.onObject(s, PermRead, act) && w.way(s) && !w.file.denies(s, AccessRead))
	case act == ActReadObjectACL:
		return yes(s.Admin || w.onObject(s, PermReadACP, act) && w.way(s))
	case act == ActWriteObjectACL:
		return yes(s.Admin || w.onObject(s, PermWriteACP, act) && w.way(s))
	}
	panic(act)
}

// lists is the naive answer to what a listing of the bucket shows: its error,
// and whether the key is there. A local user lists with a delimiter as ls does,
// and is left out here.
func (w *world) lists(s *Subject) (bool, error) {
	const read = AccessRead | AccessExec
	if !s.Admin && (!w.onBucket(s, PermRead, ActListObjects) || w.bucket.denies(s, read)) {
		return false, ErrAccess
	}
	for _, d := range w.dirs {
		if !s.Admin && d.denies(s, read) {
			return false, nil
		}
	}
	return w.file != nil, nil
}

// builder makes random worlds in a store.
type builder struct {
	t  *testing.T
	fs *FS
	r  *rand.Rand
}

func (b *builder) uid() uint32 { return []uint32{0, aliceUID, bobUID, carolUID}[b.r.IntN(4)] }

func (b *builder) mode() uint32 {
	if b.r.IntN(3) == 0 {
		return []uint32{0o755, 0o777, 0o700, 0o644, 0o600, 0o666}[b.r.IntN(6)]
	}
	return uint32(b.r.IntN(0o1000))
}

func (b *builder) grants() Grants {
	var g Grants
	for range b.r.IntN(3) {
		x := Grant{Grantee: Grantee(1 + b.r.IntN(3)), Permission: []Permission{PermRead, PermWrite, PermReadACP, PermWriteACP, PermFullControl}[b.r.IntN(5)]}
		if x.Grantee == GranteeUser {
			x.User = []UserID{"alice", "bob", "carol"}[b.r.IntN(3)]
		}
		g = append(g, x)
	}
	return g
}

// posixTouch changes owner, mode and ACL of an inode as root does over NFS.
func (b *builder) posixTouch(ino Ino, x *thing) {
	if b.r.IntN(2) == 0 {
		x.uid, x.gid = b.uid(), []uint32{aliceUID, staffGID}[b.r.IntN(2)]
		_, err := b.fs.SetAttr(bg, Root, ino, SetAttr{UID: &x.uid, GID: &x.gid})
		want(b.t, err, nil)
	}
	if b.r.IntN(2) == 0 {
		x.mode, x.chosen = b.mode(), true
		_, err := b.fs.SetAttr(bg, Root, ino, SetAttr{Mode: &x.mode})
		want(b.t, err, nil)
	}
	if b.r.IntN(4) == 0 {
		x.bob, x.group, x.chosen = b.r.IntN(8), uint32(b.r.IntN(8)), true
		x.mode = x.mode&0o707 | 0o070 // the mask
		a := posixacl.ACL{ace(posixacl.UserObj, uint16(x.mode>>6), posixacl.NoID), ace(posixacl.User, uint16(x.bob), bobUID), ace(posixacl.GroupObj, uint16(x.group), posixacl.NoID),
			ace(posixacl.Mask, 7, posixacl.NoID), ace(posixacl.Other, uint16(x.mode&7), posixacl.NoID)}
		want(b.t, b.fs.SetXattr(bg, Root, ino, Xattr{Name: posixacl.XattrAccess, Value: a.Encode()}, 0), nil)
	}
}

func (b *builder) world(bucket string) *world {
	w := &world{bucket: thing{uid: b.uid(), mode: 0o755, bob: -1, grants: b.grants()}}
	w.bucket.gid = w.bucket.uid
	with := BucketOptions{Grants: w.bucket.grants}
	if w.block = b.r.IntN(4) == 0; w.block {
		with.Config = map[string][]byte{AccessBlockConfig: {byte(IgnorePublicACLs)}}
	}
	info, err := b.fs.CreateBucketWith(bg, bucket, NewCred(w.bucket.uid, w.bucket.gid), with)
	want(b.t, err, nil)
	if b.r.IntN(2) == 0 {
		b.posixTouch(info.Ino, &w.bucket)
	}
	dir, path := info.Ino, ""
	for i := range b.r.IntN(4) {
		d := thing{uid: b.uid(), mode: 0o755, bob: -1}
		d.gid = d.uid
		name := fmt.Sprint("d", i)
		path += name + "/"
		if b.r.IntN(2) == 0 {
			d.chosen, d.mode = true, b.mode()
			a, err := b.fs.Mkdir(bg, CheckedCred(d.uid, d.gid), dir, name, d.mode)
			want(b.t, err, nil)
			dir = a.Ino
		} else {
			_, err := b.fs.PutObject(bg, ObjectName{bucket, path + "z"}, strings.NewReader(""), PutOptions{Owner: NewCred(d.uid, d.gid)})
			want(b.t, err, nil)
			dir = mustLookup(b.t, b.fs, dir, name).Ino
		}
		if b.r.IntN(2) == 0 {
			b.posixTouch(dir, &d)
		}
		w.dirs = append(w.dirs, d)
	}
	w.policy = b.policy(bucket, path+"key") // of the whole life of the file
	w.policy.identities = b.identities(bucket, path+"key")
	b.file(w, bucket, dir, path+"key")
	return w
}

// file makes the object, and changes it through some doors.
func (b *builder) file(w *world, bucket string, dir Ino, key string) {
	if b.r.IntN(6) == 0 {
		return
	}
	f := &thing{uid: b.uid(), mode: 0o644, bob: -1}
	f.gid = f.uid
	w.file = f
	cred := CheckedCred(f.uid, f.gid)
	if b.r.IntN(2) == 0 {
		f.chosen, f.mode = true, b.mode()
		_, _, _, err := b.fs.Create(bg, cred, dir, "key", CreateOptions{Mode: f.mode, NoOpen: true})
		want(b.t, err, nil)
	} else {
		f.grants = b.grants()
		_, err := b.fs.PutObject(bg, ObjectName{bucket, key}, strings.NewReader("v"), PutOptions{Size: -1, Owner: cred, Meta: ObjectMeta{Grants: f.grants}})
		want(b.t, err, nil)
	}
	ino := mustLookup(b.t, b.fs, dir, "key").Ino
	for range b.r.IntN(3) {
		switch b.r.IntN(4) {
		case 0:
			b.posixTouch(ino, f)
		case 1:
			s := []string{"admin", "bob"}[b.r.IntN(2)]
			ctx := WithSubject(bg, modelSubjects[s])
			if w.may(modelSubjects[s], ActWriteObjectACL) != nil {
				ctx, s = bg, "" // the program: it grants without a word on modes
			}
			f.grants = b.grants()
			want(b.t, b.fs.SetObjectGrants(ctx, ObjectName{bucket, key}, f.grants), nil)
			if s == "admin" || s == "bob" && f.uid == bobUID {
				f.chosen = false
			}
		case 2:
			f.grants, f.chosen = nil, false
			_, err := b.fs.PutObject(bg, ObjectName{bucket, key}, strings.NewReader("w"), PutOptions{Size: -1})
			want(b.t, err, nil)
		case 3: // content changes through POSIX
			h, err := b.fs.Open(bg, Root, ino, OpenWrite)
			want(b.t, err, nil)
			_, err = h.WriteAt(bg, []byte("posix"), 0)
			want(b.t, err, nil)
			want(b.t, h.Close(bg), nil)
			f.grants = nil
		}
	}
}

// evaluate is what the store decides, without doing it.
func evaluate(fs *FS, s *Subject, act Action, bucket, key string) error {
	ctx := WithSubject(bg, s)
	switch act {
	case ActWriteObject, ActDeleteObject:
		k, err := parseKey(ObjectName{bucket, key})
		if err != nil {
			return err
		}
		p := publication{key: &k, cond: &Preconditions{}, remove: act == ActDeleteObject}
		return fs.view(ctx, func(r cluster.Reader) error {
			at, err := keypath.Locate(r, &k)
			if err == nil {
				j := fs.rights.OnKey(ctx, r, &k, &at)
				_, err = checkTarget(&j, &p, &at)
			}
			return err
		})
	case ActReadObject:
		_, err := fs.HeadObject(ctx, ObjectName{bucket, key}, GetOptions{})
		return err
	}
	_, _, err := fs.ObjectGrants(ctx, act, ObjectName{bucket, key})
	return err
}

func sameAnswer(a, b error) bool {
	if errors.Is(a, ErrPerm) {
		a = ErrAccess
	}
	for _, e := range []error{ErrAccess, ErrNoSuchKey} {
		if errors.Is(a, e) || errors.Is(b, e) {
			return errors.Is(a, e) && errors.Is(b, e)
		}
	}
	return a == nil && b == nil
}

func TestRightsAgreeWithNaiveModel(t *testing.T) {
	seed := rand.Uint64()
	fs := openTest(t, mem.New(mem.Options{}))
	b := &builder{t: t, fs: fs, r: rand.New(rand.NewPCG(seed, 1))}
	worlds := 150
	if testing.Short() {
		worlds = 30
	}
	for i := range worlds {
		bucket := fmt.Sprintf("world-%d", i)
		w := b.world(bucket)
		key := ""
		for d := range w.dirs {
			key += fmt.Sprintf("d%d/", d)
		}
		key += "key"
		for name, s := range modelSubjects {
			for _, act := range []Action{ActReadObject, ActWriteObject, ActDeleteObject, ActReadObjectACL, ActWriteObjectACL} {
				naive := w.may(s, act)
				for door, got := range map[string]error{
					"S3": evaluate(fs, s, act, bucket, key), "REST": evaluate(fs, s, act, "", bucket+"/"+key),
				} {
					if !sameAnswer(got, naive) {
						t.Fatalf("seed %d, world %d: %s, action %d over %s: %v, the model says %v\n%+v\nfile %+v", seed, i, name, act, door, got, naive, w, w.file)
					}
				}
			}
			if !s.Local {
				compareListing(t, fs, w, s, bucket, key, fmt.Sprintf("seed %d, world %d, %s", seed, i, name))
			}
		}
	}
}

func compareListing(t *testing.T, fs *FS, w *world, s *Subject, bucket, key, what string) {
	t.Helper()
	page, err := fs.ListObjects(WithSubject(bg, s), bucket, ListOptions{MaxKeys: MaxListKeys})
	shown, naive := w.lists(s)
	got := slices.ContainsFunc(page.Objects, func(o ObjectInfo) bool { return o.Key == key })
	if !sameAnswer(err, naive) || got != shown {
		t.Fatalf("%s: lists %v %v, the model says %v %v\n%+v\nfile %+v", what, got, err, shown, naive, w, w.file)
	}
}
