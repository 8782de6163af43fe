package vfs

import (
	"encoding/json"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// The part of the naive model of rights that knows policies of identities.

// modelIdentity is what a user of the model holds.
type modelIdentity struct {
	inline, attached, group []modelStatement
	bound                   []modelStatement // nil: no boundary
}

// identities gives some users policies, in every form, with groups in place of who.
func (b *builder) identities(bucket, key string) map[UserID]*modelIdentity {
	held := map[UserID]*modelIdentity{}
	for _, who := range []UserID{"alice", "bob", "carol"} {
		if b.r.IntN(2) == 0 {
			b.hold(string(who), record.Permissions{})
			continue
		}
		id, p := &modelIdentity{}, record.Permissions{}
		part := func() []modelStatement {
			if b.r.IntN(2) == 0 {
				return nil
			}
			return b.identityStatements()
		}
		if id.inline = part(); id.inline != nil {
			p.Inline = []record.InlinePolicy{{Name: "p", Text: identityText(id.inline, bucket, key)}}
		}
		if id.attached = part(); id.attached != nil {
			p.Attached = []string{b.managed(id.attached, bucket, key)}
		}
		if id.bound = part(); id.bound != nil {
			p.Boundary = b.managed(id.bound, bucket, key)
		}
		if id.group = part(); id.group != nil {
			p.Groups = []string{b.group(id.group, bucket, key)}
		}
		b.hold(string(who), p)
		held[who] = id
	}
	return held
}

func (b *builder) identityStatements() (list []modelStatement) {
	for range 1 + b.r.IntN(3) {
		x := modelStatement{deny: b.r.IntN(4) == 0, bucket: b.r.IntN(2) == 0}
		x.key = !x.bucket || b.r.IntN(2) == 0
		for _, act := range []Action{ActListObjects, ActReadObject, ActWriteObject, ActDeleteObject, ActReadObjectACL, ActWriteObjectACL} {
			if b.r.IntN(2) == 0 {
				x.acts = append(x.acts, act)
			}
		}
		if len(x.acts) > 0 {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return b.identityStatements()
	}
	return list
}

func identityText(list []modelStatement, bucket, key string) []byte {
	var statements []map[string]any
	for _, x := range list {
		s := map[string]any{"Effect": "Allow"}
		if x.deny {
			s["Effect"] = "Deny"
		}
		var names, resources []string
		for _, act := range x.acts {
			names = append(names, rights.PolicyAction(act))
		}
		if x.bucket {
			resources = append(resources, rights.ARNPrefix+bucket)
		}
		if x.key {
			resources = append(resources, rights.ARNPrefix+bucket+"/"+key)
		}
		s["Action"], s["Resource"] = names, resources
		statements = append(statements, s)
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		panic(err)
	}
	return text
}

func (b *builder) set(key, value []byte) {
	want(b.t, b.fs.update(bg, func(t cluster.Txn, _ *op) error {
		if err := t.Set(record.RevisionKey(), record.NewRevision()); err != nil {
			return err
		}
		return t.Set(key, value)
	}), nil)
}

func (b *builder) hold(id string, p record.Permissions) { b.set(record.PermissionsKey(id), p.Encode()) }

func (b *builder) managed(list []modelStatement, bucket, key string) string {
	m := record.ManagedPolicy{ID: record.NewID(record.PolicyKind), Name: "m", Path: "/", Default: 2, Next: 3, Versions: []record.PolicyVersion{
		{Number: 1, Text: []byte("not in force")}, {Number: 2, Text: identityText(list, bucket, key)}}}
	b.set(record.ManagedPolicyKey(m.ID), m.Encode())
	return m.ID
}

func (b *builder) group(list []modelStatement, bucket, key string) string {
	g := record.Group{ID: record.NewID(record.GroupKind), Name: "g", Path: "/"}
	b.set(record.GroupKey(g.ID), g.Encode())
	b.hold(g.ID, record.Permissions{Inline: []record.InlinePolicy{{Name: "p", Text: identityText(list, bucket, key)}}})
	return g.ID
}
