package vfs

import (
	"encoding/json"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/bucketconf"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// The half of the naive model of rights that knows policies, as lists of what the test
// chose.

type modelStatement struct {
	deny   bool
	who    []string // names of modelSubjects; none: everybody
	acts   []Action
	bucket bool // it is about the bucket itself
	key    bool // it is about the key
}

type modelPolicy struct {
	statements []modelStatement
	restrict   bool // the block takes from strangers what a public policy gives
	identities map[UserID]*modelIdentity
}

func (p *modelPolicy) public() bool {
	return slices.ContainsFunc(p.statements, func(s modelStatement) bool { return !s.deny && len(s.who) == 0 })
}

// decide is what statements say to s: whether one denies, and whether one allows.
func decide(list []modelStatement, s *Subject, act Action) (deny, allow bool) {
	for _, x := range list {
		on := x.key
		if act == ActListObjects {
			on = x.bucket
		}
		named := len(x.who) == 0 || !rights.Anonymous(s) && slices.Contains(x.who, string(s.User))
		if on && named && slices.Contains(x.acts, act) {
			deny, allow = deny || x.deny, allow || !x.deny
		}
	}
	return deny, allow
}

// gives is what becomes of a right that ownership or an ACL gives, or does not.
func (p *modelPolicy) gives(_ *world, s *Subject, act Action, otherwise bool) bool {
	deny, allow := decide(p.statements, s, act)
	allow = allow && !(p.restrict && p.public())
	id := p.identities[s.User]
	if id == nil || rights.Anonymous(s) {
		return !deny && (allow || otherwise)
	}
	own, given := decide(slices.Concat(id.inline, id.attached, id.group), s, act)
	out, within := decide(id.bound, s, act)
	switch {
	case deny, own, out:
		return false
	case allow:
		return true
	case id.bound != nil && !within:
		return false
	case len(id.inline)+len(id.attached)+len(id.group) > 0:
		return given
	}
	return otherwise
}

// policy gives the bucket a policy, every other time.
func (b *builder) policy(bucket, key string) (p modelPolicy) {
	if b.r.IntN(2) == 0 {
		return p
	}
	acts := []Action{ActListObjects, ActReadObject, ActWriteObject, ActDeleteObject, ActReadObjectACL, ActWriteObjectACL}
	for range 1 + b.r.IntN(3) {
		x := modelStatement{deny: b.r.IntN(3) == 0, bucket: b.r.IntN(2) == 0}
		x.key = !x.bucket || b.r.IntN(2) == 0
		for _, who := range []string{"alice", "bob", "carol"} {
			if b.r.IntN(3) == 0 {
				x.who = append(x.who, who)
			}
		}
		for _, act := range acts {
			if b.r.IntN(2) == 0 {
				x.acts = append(x.acts, act)
			}
		}
		if len(x.acts) > 0 {
			p.statements = append(p.statements, x)
		}
	}
	if len(p.statements) == 0 {
		return modelPolicy{}
	}
	b.store(bucket, p.text(b, bucket, key))
	if p.restrict = b.r.IntN(3) == 0; p.restrict {
		_, block, err := b.fs.BucketAttr(bg, bucket, record.ConfigPrefix+AccessBlockConfig)
		want(b.t, err, nil)
		want(b.t, b.fs.SetBucketConfig(bg, bucket, AccessBlockConfig, []byte{byte(rights.ReadAccessBlock(block) | RestrictPublicBuckets)}), nil)
	}
	return p
}

// text writes the policy, with resources that are about the key in several ways.
func (p *modelPolicy) text(b *builder, bucket, key string) []byte {
	var list []map[string]any
	for _, x := range p.statements {
		s := map[string]any{"Effect": "Allow", "Principal": "*"}
		if x.deny {
			s["Effect"] = "Deny"
		}
		if len(x.who) > 0 {
			s["Principal"] = map[string]any{"AWS": x.who}
		}
		var names, resources []string
		for _, act := range x.acts {
			names = append(names, rights.PolicyAction(act))
		}
		if x.bucket {
			resources = append(resources, "arn:aws:s3:::"+bucket)
		}
		if x.key {
			resources = append(resources, "arn:aws:s3:::"+bucket+"/"+[]string{"*", key, key[:1] + "*", "*" + key[1:]}[b.r.IntN(4)])
		} else {
			resources = append(resources, "arn:aws:s3:::"+bucket+"/other")
		}
		if !x.bucket { // an action on a bucket needs one
			resources = append(resources, "arn:aws:s3:::"+bucket)
			names = slices.DeleteFunc(names, func(n string) bool { return n == rights.PolicyAction(ActListObjects) })
		}
		if len(names) == 0 {
			names = []string{"s3:GetBucketTagging"}
		}
		s["Action"], s["Resource"] = names, resources
		list = append(list, s)
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": list})
	want(b.t, err, nil)
	return text
}

// store sets a policy that names users of the model, who are none of the store.
func (b *builder) store(bucket string, text []byte) {
	stored := record.BucketPolicy{Bucket: bucket, Text: text}
	_, err := rights.CompilePolicy(&stored)
	want(b.t, err, nil)
	want(b.t, b.fs.update(bg, func(t cluster.Txn, _ *op) error {
		n, err := keypath.BucketInode(t, bucket)
		if err != nil {
			return err
		}
		return bucketconf.StorePolicy(t, n, &stored)
	}), nil)
}
