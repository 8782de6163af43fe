package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// The policies of a request: the bucket's, those of the caller, and its permission
// boundary, in the order of S3 ("Policy evaluation logic" of the IAM user guide).

// byPolicies returns what all policies say of an action under a name of theirs:
// Allow, or None, if grants decide. ErrAccess for what one denies, for what the
// boundary does not hold, and where somebody who is held to policies is allowed
// nothing by any.
func (j *Judge) byPolicies(act Action, name string, n *record.Inode) (policy.Effect, error) {
	if err := j.pays(); err != nil {
		return policy.None, err
	}
	e, err := j.byPolicy(act, name, n)
	if err != nil {
		return e, err
	}
	set, err := j.identity()
	if set == nil || err != nil {
		return e, err
	}
	resource, err := j.resource(act)
	if err != nil {
		return policy.None, err
	}
	v := set.Decide(&policy.Request{Action: name, Resource: resource, Principal: j.Subject.principal(), Values: j.policyKeys(n)})
	switch {
	case v.Effect == policy.Deny:
		return policy.None, fmt.Errorf("statement %d %q of %s denies %s: %w", v.Number, v.Sid, v.Policy, name, j.denied(act))
	case e == policy.Allow:
		return e, nil // to the caller by name, or to everybody: S3 asks nobody else
	case !v.Within:
		return policy.None, fmt.Errorf("the %s does not hold %s: %w", v.Bounds, name, j.denied(act))
	case e == policy.AllowRole:
		return policy.Allow, nil
	case !set.Held():
		return policy.None, nil
	case v.Effect != policy.Allow:
		return policy.None, fmt.Errorf("no policy allows %s: %w", name, j.denied(act))
	}
	return policy.Allow, nil
}

// pays returns ErrAccess for who would have to pay for a request and does not say so: all
// but the bucket's owner, strangers included, of whom nobody knows who they are ("Using
// Requester Pays buckets" of the S3 user guide).
func (j *Judge) pays() error {
	if j.unpolicied || j.Bucket == 0 || j.Free() || j.Subject.Local {
		return nil
	}
	b, err := j.bucketAttrs()
	if err != nil || !RequesterPays(b.Get(PayerAttr)) {
		return err
	}
	if owner, err := j.ownsBucket(); err != nil || owner {
		return err
	}
	if c := j.Subject.Call; !Anonymous(j.Subject) && c != nil && c.Values != nil {
		if v, ok := c.Values.Value(payerKey); ok && len(v) == 1 && v[0] == requester {
			return nil
		}
	}
	return fmt.Errorf("who asks pays for requests to the bucket, and did not say so: %w", fserr.ErrAccess)
}

// identity returns the policies of the caller, nil for who is not held to any.
func (j *Judge) identity() (set *iam.Set, err error) {
	if j.heldRead {
		return j.held, nil
	}
	if j.Free() || j.Subject.Local || j.Subject.User == "" {
		return nil, nil
	}
	j.held, err = j.rules.IAM.SetOf(j.R, j.Subject.User)
	if err == nil && j.Subject.Session != nil {
		j.held, err = j.rules.IAM.Limited(j.R, j.held, j.Subject.Session)
	}
	if errors.Is(err, fserr.ErrNotExist) {
		err = fmt.Errorf("%w: the role of the session, or a policy of it, was removed", fserr.ErrAccess)
	}
	j.heldRead = err == nil
	return j.held, err
}

// ByKeys reports whether policies can distinguish keys of the bucket.
func (j *Judge) ByKeys() (bool, error) {
	if p, err := j.bucketPolicy(); p.BucketPolicy != nil || err != nil {
		return p.BucketPolicy != nil, err
	}
	set, err := j.identity()
	return set != nil, err
}

// resource is the ARN that an action is about, by the name that the bucket has now.
func (j *Judge) resource(act Action) (string, error) {
	name := j.name
	if name == "" && j.Bucket != 0 {
		n, err := j.bucketInode()
		if err != nil {
			return "", err
		}
		name = n.Name
	}
	switch {
	case act == ActListBuckets:
		return ARNPrefix + "*", nil
	case act.onObject():
		return ARNPrefix + name + "/" + j.Key, nil
	}
	return ARNPrefix + name, nil
}

// bucketInode returns the inode of the bucket.
func (j *Judge) bucketInode() (n *record.Inode, err error) {
	if j.owned == nil {
		if n, err = record.GetInode(j.R, j.Bucket); err != nil {
			return nil, err
		}
		j.owned = n
	}
	return j.owned, nil
}

// bucketPolicy returns the policy of the bucket, and what its public access block says. The
// entry of the bucket's directory reports whether there is a policy: without one nothing is
// read. With one, the bucket's attributes are, whose digest finds the compiled policy.
func (j *Judge) bucketPolicy() (u policyUse, err error) {
	if j.unpolicied || j.Bucket == 0 || j.Free() || j.Subject.Local {
		return u, nil
	}
	b, err := j.bucketAttrs()
	if err != nil {
		return u, err
	}
	digest := b.Get(record.PolicyAttr)
	switch len(digest) {
	case 0:
		return u, nil
	case len(record.PolicyDigest{}):
	default:
		return u, fmt.Errorf("%w: policy of bucket %d has a digest of %d bytes", fserr.ErrCorrupt, j.Bucket, len(digest))
	}
	u, err = j.rules.policies.get(j.R, j.Bucket, record.PolicyDigest(digest))
	u.block = accessBlock(b)
	return u, err
}

// TakesPolicy returns ErrAccess for a policy that the bucket takes from nobody who
// comes through an object door, administrators included.
func (j *Judge) TakesPolicy(p *BucketPolicy) error {
	if j.Subject == nil || !p.Public() {
		return nil
	}
	b, err := j.bucketAttrs()
	if err == nil && accessBlock(b)&BlockPublicPolicies != 0 {
		return fmt.Errorf("the bucket's public access block refuses policies that are public: %w", fserr.ErrAccess)
	}
	return err
}

// byPolicy returns what the bucket's policy says of an action under a name of its, to
// the object n or to what has none yet: Allow, AllowRole, or None. Deny is ErrAccess.
func (j *Judge) byPolicy(act Action, name string, n *record.Inode) (policy.Effect, error) {
	p, err := j.bucketPolicy()
	if p.BucketPolicy == nil || err != nil || name == "" {
		return policy.None, err
	}
	v, err := j.rules.policies.decide(j.R, j.Bucket, p, &policy.Request{Action: name, Resource: p.resource(act.onObject(), j.Key), Principal: j.Subject.principal(), Values: j.policyKeys(n)})
	switch e := v.effect; {
	case err != nil:
		return policy.None, err
	case (e == policy.Allow || e == policy.AllowRole) && (p.block&RestrictPublicBuckets == 0 || !p.Public()):
		return e, nil
	case e != policy.Deny:
		return policy.None, nil
	case keepsPolicy[name]:
		// Who could not change a policy any more that denies everything: S3
		// leaves that to the owner.
		if owner, err := j.ownsBucket(); err != nil || owner {
			return policy.None, err
		}
	}
	return policy.None, fmt.Errorf("statement %d %q of the bucket's policy denies %s: %w", v.number, v.sid, name, j.denied(act))
}

// keepsPolicy are actions that no policy takes from the bucket's owner.
var keepsPolicy = map[string]bool{"s3:GetBucketPolicy": true, "s3:PutBucketPolicy": true, "s3:DeleteBucketPolicy": true}

// policyKeys are the condition keys of what is asked for.
func (j *Judge) policyKeys(n *record.Inode) *policyKeys {
	k := &policyKeys{anonymous: Anonymous(j.Subject), session: j.Subject.Session, user: j.Subject.User, name: j.Subject.Name, uid: j.Subject.UID, now: j.rules.Now, list: j.List}
	if n != nil {
		k.tags = n.Object.Tags()
	}
	if j.Subject.Call != nil {
		k.values = j.Subject.Call.Values
	}
	return k
}

// MayAdminister is the judge of users, groups and policies: administrators may do
// everything, others what a policy of theirs allows. Nobody but an administrator
// changes one.
func (u *Rules) MayAdminister(ctx context.Context, r cluster.Reader, a iam.Ask) error {
	s := SubjectOf(ctx)
	if MayAll(s) {
		return nil
	}
	why := "no identity-based policy allows the " + a.Action + " action"
	if !a.Admin {
		j := Judge{rules: u, R: r, Subject: s}
		set, err := j.identity()
		if err != nil {
			return err
		}
		if set != nil {
			keys := j.policyKeys(nil)
			keys.policyARN, keys.boundary = a.PolicyARN, a.Boundary
			v := set.Decide(&policy.Request{Action: a.Action, Resource: a.Resource, Principal: s.principal(), Values: keys})
			switch {
			case v.Effect == policy.Deny:
				why = "an explicit deny stands in " + v.Policy
			case v.Effect == policy.Allow && !v.Within:
				why = "no " + v.Bounds + " allows the " + a.Action + " action"
			case v.Effect == policy.Allow:
				return nil
			}
		}
	}
	return &iam.Denied{Message: fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s because %s", s.arn(), a.Action, cmp.Or(a.Named, a.Resource), why)}
}
