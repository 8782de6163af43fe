package iam

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// What an operator does in one step, and the IAM API in several.

// PutPolicy makes a managed policy, or gives the one of that name another text, in force
// at once; the oldest version goes if there are too many. *policy.Error.
func (d *Directory) PutPolicy(ctx context.Context, name string, text []byte) (m Managed, err error) {
	if err := validName("policyName", name, maxName); err != nil {
		return m, err
	}
	if err := validManaged(text); err != nil {
		return m, err
	}
	err = d.update(ctx, about("iam:CreatePolicyVersion", PolicyARN("/", name)), func(t cluster.Txn, nowNS int64) error {
		id, err := t.Get(record.IAMNameKey(record.PolicyKind, name))
		if err != nil {
			return err
		}
		m = Managed{ID: record.NewID(record.PolicyKind), Name: name, Path: "/", Created: nowNS, Next: 1}
		if id != nil {
			m, err = managedByID(t, string(id))
		} else {
			err = takeName(t, record.PolicyKind, "Policy", name, m.ID)
		}
		if err != nil {
			return err
		}
		if len(m.Versions) >= maxVersions {
			oldest := slices.IndexFunc(m.Versions, func(v Version) bool { return v.Number != m.Default })
			m.Versions = slices.Delete(m.Versions, oldest, oldest+1)
		}
		m.Versions = append(m.Versions, Version{Number: m.Next, Created: nowNS, Text: text})
		m.Default, m.Updated = m.Next, nowNS
		m.Next++
		return putManaged(t, &m)
	})
	return m, err
}

// DropPolicy removes a policy that nothing uses, with all its versions.
func (d *Directory) DropPolicy(ctx context.Context, name string) error {
	return d.update(ctx, d.aboutManaged("iam:DeletePolicy", name), func(t cluster.Txn, _ int64) error {
		m, err := managedNamed(t, name)
		if err != nil {
			return err
		}
		if err := unused(t, m.ID); err != nil {
			return err
		}
		return dropManaged(t, &m)
	})
}

// DropRole removes a role with the policies that it holds; its sessions end.
func (d *Directory) DropRole(ctx context.Context, name string) error {
	return d.update(ctx, d.aboutRole("DeleteRole", name), func(t cluster.Txn, _ int64) error {
		x, err := roleNamed(t, name)
		if err != nil {
			return err
		}
		return d.dropRole(t, &x)
	})
}

// revokePolicy is the name that Amazon's console gives to the inline policy by which it
// ends sessions.
const revokePolicy = "AWSRevokeOlderSessions"

// Revoke ends the sessions of a role that were begun before now, by a policy of the role.
func (d *Directory) Revoke(ctx context.Context, role string) error {
	type object = map[string]any
	// Sessions know the second that they were begun in.
	before := d.now().UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
	text, err := json.Marshal(object{"Version": "2012-10-17", "Statement": object{"Effect": "Deny", "Action": "*", "Resource": "*",
		"Condition": object{"DateLessThan": object{"aws:TokenIssueTime": before}}}})
	if err != nil {
		return err
	}
	return d.PutInline(ctx, Holder{InRole, role}, revokePolicy, text)
}
