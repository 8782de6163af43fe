package iam

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Group is a group of users.
type Group = record.Group

// takeName has a name lead to an ID.
func takeName(t cluster.Txn, kind, what, name, id string) error {
	had, err := t.Get(record.IAMNameKey(kind, name))
	if err != nil {
		return err
	}
	if had != nil {
		return fault(EntityAlreadyExists, "%s with name %s already exists.", what, name)
	}
	return t.Set(record.IAMNameKey(kind, name), []byte(id))
}

// groupNamed reads the group of a name.
func groupNamed(r cluster.Reader, name string) (Group, error) {
	id, err := r.Get(record.IAMNameKey(record.GroupKind, name))
	if err == nil && id == nil {
		err = fault(NoSuchEntity, "The group with name %s cannot be found.", name)
	}
	if err != nil {
		return Group{}, err
	}
	return groupByID(r, string(id))
}

func groupByID(r cluster.Reader, id string) (Group, error) {
	v, err := r.Get(record.GroupKey(id))
	if err != nil {
		return Group{}, err
	}
	return record.DecodeGroup(id, v)
}

// The bits of a backlink.
const (
	linkHolds  = 1 << iota // is in the group, or has the policy attached
	linkBounds             // is bounded by the policy
)

// backlink records who is attached to a group or policy.
type backlink struct {
	from  string
	flags byte
}

func backlinks(r cluster.Reader, to string) (list []backlink, err error) {
	prefix := record.BacklinkKey(to, "")
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
		if len(v) != 1 {
			return fmt.Errorf("%w: backlink %q", fserr.ErrCorrupt, k)
		}
		list = append(list, backlink{string(bytes.TrimPrefix(k, prefix)), v[0]})
		return nil
	})
	return list, err
}

func setBacklink(t cluster.Txn, to, from string, flag byte, on bool) error {
	key := record.BacklinkKey(to, from)
	v, err := t.Get(key)
	if err != nil {
		return err
	}
	flags := byte(0)
	if len(v) == 1 {
		flags = v[0]
	}
	if flags &^= flag; on {
		flags |= flag
	}
	if flags == 0 {
		return t.Delete(key)
	}
	return t.Set(key, []byte{flags})
}

// quota is how many of a kind one may hold, with its name in messages.
type quota struct {
	name string
	max  int
}

// hold adds to, a group or policy, to the sorted list of what from holds, with its
// backlink; one that is held already stays.
func hold(t cluster.Txn, list *[]string, to, from string, q quota) error {
	switch {
	case slices.Contains(*list, to):
		return nil
	case len(*list) >= q.max:
		return fault(LimitExceeded, "Cannot exceed quota for %s: %d", q.name, q.max)
	}
	*list = append(*list, to)
	slices.Sort(*list)
	return setBacklink(t, to, from, linkHolds, true)
}

// release is the inverse of hold, and reports whether to was held.
func release(t cluster.Txn, list *[]string, to, from string) (held bool, err error) {
	i := slices.Index(*list, to)
	if i < 0 {
		return false, nil
	}
	*list = slices.Delete(*list, i, i+1)
	return true, setBacklink(t, to, from, linkHolds, false)
}

// Managed is a policy with a name of its own.
type Managed = record.ManagedPolicy

// Version is one text of a managed policy.
type Version = record.PolicyVersion

// managedNamed reads the policy of an ARN or name.
func managedNamed(r cluster.Reader, arn string) (Managed, error) {
	path, name := nameOfARN(policyARN, arn)
	missing := fault(NoSuchEntity, "Policy %s does not exist or is not attachable.", arn)
	id, err := r.Get(record.IAMNameKey(record.PolicyKind, name))
	if err == nil && id == nil {
		err = missing
	}
	if err != nil {
		return Managed{}, err
	}
	m, err := managedByID(r, string(id))
	if err == nil && path != "" && (path != m.Path || name != m.Name) {
		err = missing
	}
	return m, err
}

func managedByID(r cluster.Reader, id string) (Managed, error) {
	v, err := r.Get(record.ManagedPolicyKey(id))
	if err != nil {
		return Managed{}, err
	}
	return record.DecodeManagedPolicy(id, v)
}

// Role is an identity without keys, which others assume for a time.
type Role = record.Role

// IsRole reports whether an ID is that of a role.
func IsRole(id string) bool { return strings.HasPrefix(id, record.RoleKind) }

// roleNamed reads the role of a name.
func roleNamed(r cluster.Reader, name string) (Role, error) {
	id, err := r.Get(record.IAMNameKey(record.RoleKind, name))
	if err == nil && id == nil {
		err = fault(NoSuchEntity, "The role with name %s cannot be found.", name)
	}
	if err != nil {
		return Role{}, err
	}
	return roleByID(r, string(id))
}

func roleByID(r cluster.Reader, id string) (Role, error) {
	x, err := record.GetRole(r, id)
	if err == nil && x == nil {
		err = fault(NoSuchEntity, "The role with ID %s cannot be found.", id)
	}
	if err != nil {
		return Role{}, err
	}
	return *x, nil
}

func putPermissions(t cluster.Txn, id string, p *record.Permissions) error {
	if p.Empty() {
		return t.Delete(record.PermissionsKey(id))
	}
	return t.Set(record.PermissionsKey(id), p.Encode())
}
