package iam

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// maxVersions bounds the versions of a managed policy (IAM).
const maxVersions = 5

// VersionID is the number of a version as the API writes it.
func VersionID(number int) string { return "v" + strconv.Itoa(number) }

// versionNumber reads what VersionID wrote, 0 if it is nothing such.
func versionNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "v"))
	if err != nil || VersionID(n) != id {
		return 0
	}
	return n
}

// NewPolicy is a policy to be made.
type NewPolicy struct {
	Name, Path, Description string
	Text                    []byte
}

// CreatePolicy makes a managed policy; an empty path is "/". *policy.Error (IAM
// CreatePolicy).
func (d *Directory) CreatePolicy(ctx context.Context, n NewPolicy) (Managed, error) {
	var m Managed
	path, err := validPath(n.Path)
	if err == nil {
		err = validName("policyName", n.Name, maxName)
	}
	if err == nil && len(n.Description) > maxDescription {
		err = fault(ValidationError, "1 validation error detected: Value at 'description' failed to satisfy constraint: Member must have length less than or equal to %d", maxDescription)
	}
	if err == nil {
		err = validManaged(n.Text)
	}
	if err != nil {
		return m, err
	}
	err = d.update(ctx, about("iam:CreatePolicy", PolicyARN(path, n.Name)), func(t cluster.Txn, nowNS int64) error {
		m = Managed{ID: record.NewID(record.PolicyKind), Name: n.Name, Path: path, Description: n.Description, Created: nowNS, Updated: nowNS,
			Default: 1, Next: 2, Versions: []Version{{Number: 1, Created: nowNS, Text: n.Text}}}
		if err := takeName(t, record.PolicyKind, "A policy called "+n.Name+" already exists. Policy", n.Name, m.ID); err != nil {
			return err
		}
		return putManaged(t, &m)
	})
	return m, err
}

func validManaged(text []byte) error {
	if _, err := compile(text); err != nil {
		return err
	}
	if weight(text) > maxManagedText {
		return fault(LimitExceeded, "Cannot exceed quota for PolicySize: %d", maxManagedText)
	}
	return nil
}

func putManaged(t cluster.Txn, m *Managed) error {
	return t.Set(record.ManagedPolicyKey(m.ID), m.Encode())
}

// aboutManaged is an act on a policy, which is named by its ARN or name.
func (d *Directory) aboutManaged(action, named string) func(cluster.Reader) (Ask, error) {
	return func(r cluster.Reader) (Ask, error) {
		arn, err := managedARN(r, named)
		return Ask{Action: action, Resource: arn, Named: givenPolicy(named)}, err
	}
}

// managedARN is the ARN by which acts on a policy are judged, which need not be there.
func managedARN(r cluster.Reader, named string) (string, error) {
	m, err := managedNamed(r, named)
	if missing(err) {
		return givenPolicy(named), nil
	}
	return PolicyARN(m.Path, m.Name), err
}

// givenPolicy is the ARN of a policy as far as what names it says.
func givenPolicy(named string) string {
	if strings.HasPrefix(named, "arn:") {
		return named
	}
	return PolicyARN("/", named)
}

// Use is how many identities a policy is attached to, and bounds.
type Use struct{ Attached, Bounds int }

func use(r cluster.Reader, id string) (u Use, err error) {
	links, err := backlinks(r, id)
	for _, l := range links {
		u.Attached += int(l.flags & linkHolds)
		u.Bounds += int(l.flags&linkBounds) / linkBounds
	}
	return u, err
}

// Policy returns a managed policy (IAM GetPolicy, GetPolicyVersion,
// ListPolicyVersions): action is which of these.
func (d *Directory) Policy(ctx context.Context, action, arn string) (m Managed, u Use, err error) {
	err = d.view(ctx, d.aboutManaged(action, arn), func(r cluster.Reader) (err error) {
		if m, err = managedNamed(r, arn); err == nil {
			u, err = use(r, m.ID)
		}
		return err
	})
	return m, u, err
}

// Listed is a managed policy in a list.
type Listed struct {
	Managed
	Use
}

// Policies returns all managed policies in order of their names (IAM ListPolicies).
func (d *Directory) Policies(ctx context.Context) (list []Listed, err error) {
	err = d.view(ctx, about("iam:ListPolicies", PolicyARN("/", "*")), func(r cluster.Reader) error {
		list = nil
		from, to := record.Table(record.TabManaged)
		err := r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			m, err := record.DecodeManagedPolicy(string(k[1:]), v)
			list = append(list, Listed{Managed: m})
			return err
		})
		for i := range list {
			if err == nil {
				list[i].Use, err = use(r, list[i].ID)
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// DeletePolicy removes a policy that nothing uses and that has one version left (IAM
// DeletePolicy).
func (d *Directory) DeletePolicy(ctx context.Context, arn string) error {
	return d.update(ctx, d.aboutManaged("iam:DeletePolicy", arn), func(t cluster.Txn, _ int64) error {
		m, err := managedNamed(t, arn)
		if err != nil {
			return err
		}
		if err := unused(t, m.ID); err != nil {
			return err
		}
		if len(m.Versions) > 1 {
			return fault(DeleteConflict, "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.")
		}
		return dropManaged(t, &m)
	})
}

// unused refuses a policy that somebody holds, or is bounded by.
func unused(r cluster.Reader, id string) error {
	u, err := use(r, id)
	if err == nil && u != (Use{}) {
		err = fault(DeleteConflict, "Cannot delete a policy attached to entities.")
	}
	return err
}

func dropManaged(t cluster.Txn, m *Managed) error {
	if err := t.Delete(record.IAMNameKey(record.PolicyKind, m.Name)); err != nil {
		return err
	}
	return t.Delete(record.ManagedPolicyKey(m.ID))
}

// changeManaged changes a policy in a transaction.
func (d *Directory) changeManaged(ctx context.Context, action, arn string, fn func(m *Managed, nowNS int64) error) error {
	return d.update(ctx, d.aboutManaged(action, arn), func(t cluster.Txn, nowNS int64) error {
		m, err := managedNamed(t, arn)
		if err != nil {
			return err
		}
		if err := fn(&m, nowNS); err != nil {
			return err
		}
		m.Updated = nowNS
		return putManaged(t, &m)
	})
}

// CreateVersion adds a version to a policy. *policy.Error (IAM CreatePolicyVersion).
func (d *Directory) CreateVersion(ctx context.Context, arn string, text []byte, inForce bool) (v Version, err error) {
	if err := validManaged(text); err != nil {
		return v, err
	}
	err = d.changeManaged(ctx, "iam:CreatePolicyVersion", arn, func(m *Managed, nowNS int64) error {
		if len(m.Versions) >= maxVersions {
			return fault(LimitExceeded, "A managed policy can have up to %d versions. Before you create a new version, you must delete an existing version.", maxVersions)
		}
		v = Version{Number: m.Next, Created: nowNS, Text: text}
		m.Next++
		m.Versions = append(m.Versions, v)
		if inForce {
			m.Default = v.Number
		}
		return nil
	})
	return v, err
}

// SetDefault puts a version in force (IAM SetDefaultPolicyVersion).
func (d *Directory) SetDefault(ctx context.Context, arn, version string) error {
	return d.changeManaged(ctx, "iam:SetDefaultPolicyVersion", arn, func(m *Managed, _ int64) error {
		v, err := VersionOf(m, version)
		if err == nil {
			m.Default = v.Number
		}
		return err
	})
}

// DeleteVersion removes a version that is not in force (IAM DeletePolicyVersion).
func (d *Directory) DeleteVersion(ctx context.Context, arn, version string) error {
	return d.changeManaged(ctx, "iam:DeletePolicyVersion", arn, func(m *Managed, _ int64) error {
		v, err := VersionOf(m, version)
		if err != nil {
			return err
		}
		if v.Number == m.Default {
			return fault(DeleteConflict, "Cannot delete the default version of a policy.")
		}
		number := v.Number
		m.Versions = slices.DeleteFunc(m.Versions, func(v Version) bool { return v.Number == number })
		return nil
	})
}

// VersionOf returns the version of a policy with an ID such as "v1".
func VersionOf(m *Managed, id string) (*Version, error) {
	v := m.Version(versionNumber(id))
	if v == nil {
		return nil, fault(NoSuchEntity, "Policy %s version %s does not exist or is not attachable.", PolicyARN(m.Path, m.Name), id)
	}
	return v, nil
}
