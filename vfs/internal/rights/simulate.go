package rights

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// Stranger is a caller without an identity, to Simulate.
const Stranger = "anonymous"

// Simulated is what becomes of one request.
type Simulated struct {
	Action   string
	Resource string // ARN
	Allowed  bool
	// Explicit reports whether a statement denies it, beyond that nothing allows it.
	Explicit bool
	// Policy, Sid and Number name the statement that decided, from 1 on; 0: none did,
	// but ownership, an ACL, or that nothing allows it.
	Policy string
	Sid    string
	Number int
	// Why is that in words.
	Why string
}

// simulatePrincipal is what IAM calls a simulation, which may be about administrators, too.
const simulatePrincipal = "iam:SimulatePrincipalPolicy"

// maxSimulated bounds the answers to one question.
const maxSimulated = 1000

// Question is what Simulate is asked: each action on each resource.
type Question struct {
	Who                string // a user or role, by ARN or ID, or Stranger
	Actions, Resources []string
	Values             policy.Values // condition keys; nil: there are none
}

// Simulate returns what would become of requests, by the same judge that decides them,
// with what is stored now. Nothing is done. For a user
// who is not there, fserr.ErrNoSuchUser (IAM SimulatePrincipalPolicy).
func (u *Rules) Simulate(ctx context.Context, r cluster.Reader, q Question) ([]Simulated, error) {
	if len(q.Actions)*len(q.Resources) > maxSimulated {
		return nil, fmt.Errorf("%d actions on %d resources, %d answers are allowed: %w", len(q.Actions), len(q.Resources), maxSimulated, fserr.ErrInvalid)
	}
	s, unknown := u.simulated(r, q.Who)
	if unknown != nil && !errors.Is(unknown, fserr.ErrNoSuchUser) {
		return nil, unknown
	}
	ask := iam.Ask{Action: simulatePrincipal, Resource: q.Who, Named: q.Who}
	if unknown == nil && s.User != "" {
		var err error
		if ask.Resource, err = u.IAM.Shown(r, string(s.User)); err != nil {
			return nil, err
		}
	}
	if err := u.MayAdminister(ctx, r, ask); err != nil {
		return nil, err
	}
	if unknown != nil {
		return nil, unknown
	}
	s.Call = &Call{Values: q.Values}
	var list []Simulated
	for _, action := range q.Actions {
		for _, resource := range q.Resources {
			x, err := u.simulate(WithSubject(ctx, s), r, action, resource)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// simulated is the subject that somebody would be.
func (u *Rules) simulated(r cluster.Reader, who string) (*Subject, error) {
	if who == Stranger {
		s := *Nobody
		return &s, nil
	}
	id, err := u.IAM.Principal(r, who)
	if err != nil {
		return nil, err
	}
	if role, session, _ := strings.Cut(id, ":"); iam.IsRole(role) {
		x, err := record.GetRole(r, role)
		if err != nil {
			return nil, err
		}
		return &Subject{User: users.ID(role), Name: x.Name, UID: x.UID, GID: x.UID, Session: iam.Imagined(x, session, u.Now())}, nil
	}
	x, err := u.Users.WithID(r, users.ID(id))
	return &Subject{User: x.ID, Name: x.Name, UID: x.UID, GID: x.GID, Admin: x.Admin}, err
}

// simulate is one request of the caller.
func (u *Rules) simulate(ctx context.Context, r cluster.Reader, action, resource string) (Simulated, error) {
	s := SubjectOf(ctx)
	out := Simulated{Action: action, Resource: resource}
	path, ok := strings.CutPrefix(resource, ARNPrefix)
	if !ok || !strings.HasPrefix(action, "s3:") {
		j := u.On(ctx, r, 0)
		if free, err := s.asksFreely(action); free || err != nil {
			if out.Allowed, out.Why = err == nil, "it needs no right"; err != nil {
				out.Why = err.Error()
			}
			return out, nil
		}
		err := j.simulatesIdentity(ctx, action, resource)
		if err != nil && !IsDenial(err) {
			return out, err
		}
		err = j.explain(&out, policy.Request{Action: action, Resource: resource, Principal: j.Subject.principal(), Values: j.policyKeys(nil)}, err)
		if (action == assumeRole || action == assumeRoleWeb) && out.Allowed && out.Number == 0 {
			out.Why = "the role's trust policy allows it"
		}
		return out, err
	}
	act := actOf(action)
	call := *s.Call
	call.Act, call.Action = act, action
	s.Call = &call
	bucket, key, _ := strings.Cut(path, "/")
	j, err := u.simulatedJudge(ctx, r, bucket, key)
	if err != nil {
		return out, err
	}
	n, err := j.simulates(action, bucket, key)
	if err != nil && !IsDenial(err) {
		return out, err
	}
	return out, j.explain(&out, policy.Request{Action: action, Resource: resource, Principal: s.principal(), Values: j.policyKeys(n)}, err)
}

// simulatesIdentity returns what becomes of a request that is none of S3's.
func (j *Judge) simulatesIdentity(ctx context.Context, action, resource string) error {
	u := j.rules
	switch action {
	case assumeRoleWeb:
		return j.simulatesWeb(resource)
	case assumeRole:
		_, trust, err := u.IAM.Trust(j.R, resource)
		if noRole(err) || err == nil && Anonymous(j.Subject) {
			return j.Subject.mayNotAssume(action, resource)
		}
		if err != nil {
			return err
		}
		return j.assumes(trust, action, j.Subject.trusted(), resource)
	}
	ask := iam.Ask{Action: action, Resource: resource}
	if action != simulatePrincipal {
		about, err := u.simulated(j.R, resource)
		if err != nil && !errors.Is(err, fserr.ErrNoSuchUser) {
			return err
		}
		ask.Admin = err == nil && about.Admin
	}
	return u.MayAdminister(ctx, j.R, ask)
}

// simulatedJudge is the judge for a bucket or a key in it, which need not be there.
func (u *Rules) simulatedJudge(ctx context.Context, r cluster.Reader, bucket, key string) (j Judge, err error) {
	b, err := keypath.BucketInode(r, bucket)
	switch {
	case errors.Is(err, fserr.ErrNoSuchBucket) || errors.Is(err, fserr.ErrInvalid):
		j, err = *u.OnName(ctx, r, bucket), nil
	case err == nil:
		j = u.OnBucket(ctx, r, b)
	}
	j.Key = key
	return j, err
}

// simulates returns what becomes of a request, and the object whose tags policies see.
func (j *Judge) simulates(action, bucket, key string) (n *record.Inode, err error) {
	act := actOf(action)
	if j.Bucket == 0 || key == "" {
		return nil, j.grantsUnlessFree(act, action, nil)
	}
	k, err := keypath.Parse(bucket, key)
	if err != nil {
		return nil, err
	}
	at, err := keypath.Locate(j.R, &k)
	if err != nil {
		return nil, err
	}
	if action == policyActions[ActWriteObject] || action == policyActions[ActDeleteObject] {
		return nil, j.simulatesChange(act, &k, &at)
	}
	if err := j.Reach(&k, &at); err != nil {
		return nil, err
	}
	n, err = j.ObjectInode(&k, &at)
	switch {
	case errors.Is(err, fserr.ErrNoSuchKey):
		return nil, j.grantsUnlessFree(act, action, nil)
	case err == nil:
		err = j.grantsUnlessFree(act, action, n)
	}
	if err == nil {
		err = j.onObject(act, n)
	}
	return n, err
}

func (j *Judge) grantsUnlessFree(act Action, action string, n *record.Inode) error {
	if j.Free() {
		return nil
	}
	return j.grantsAs(act, action, n)
}

// simulatesChange is simulates for what makes or removes an entry.
func (j *Judge) simulatesChange(act Action, k *keypath.Key, at *keypath.Place) (err error) {
	var old *record.Inode
	if at.Entry != nil {
		if old, err = record.GetInode(j.R, at.Entry.Ino); err != nil {
			return err
		}
	}
	if act == ActDeleteObject {
		return j.Remove(k, at, old)
	}
	return j.Write(k, 0, nil, at, old)
}

// explain fills in what decided, where denied is what the judge returned.
func (j *Judge) explain(out *Simulated, q policy.Request, denied error) error {
	out.Allowed = denied == nil
	if denied != nil {
		out.Why = denied.Error()
	}
	if j.Free() {
		if out.Allowed {
			out.Why = "administrators may do everything"
		}
		return nil
	}
	want := policy.Deny
	if out.Allowed {
		want = policy.AllowRole // or more
	}
	p, err := j.bucketPolicy()
	if err != nil {
		return err
	}
	if p.BucketPolicy != nil {
		v, err := j.rules.policies.decide(j.R, j.Bucket, p, &q)
		if err != nil {
			return err
		}
		if e := v.effect; e >= want && e != policy.None && (e == policy.Deny) != out.Allowed {
			out.decided("the bucket's policy", v.sid, v.number)
			return nil
		}
	}
	set, err := j.identity()
	if err != nil && !errors.Is(err, fserr.ErrAccess) {
		return err
	}
	if set != nil {
		if v := set.Decide(&q); v.Number > 0 && (v.Effect == policy.Deny) != out.Allowed {
			if !out.Allowed || set.Held() {
				out.decided(v.Policy, v.Sid, v.Number)
				return nil
			}
		}
	}
	if out.Allowed {
		out.Why = "ownership or an ACL allows it"
	}
	return nil
}

func (s *Simulated) decided(by, sid string, number int) {
	s.Explicit = !s.Allowed
	s.Policy, s.Sid, s.Number = by, sid, number
	if s.Allowed {
		s.Why = fmt.Sprintf("statement %d %q of %s allows it", number, sid, by)
	}
}

// actOf is what an action of S3's is about here.
func actOf(action string) Action {
	for act, name := range policyActions {
		if name == action {
			return Action(act)
		}
	}
	name := strings.TrimPrefix(action, "s3:")
	switch {
	case name == "GetBucketLocation" || name == "ListBucketVersions" || name == "ListBucketMultipartUploads":
		return ActListObjects
	case name == "AbortMultipartUpload":
		return ActOwnUpload
	case !policy.OnObject(action):
		return ActConfigureBucket
	case strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List"):
		return ActReadObject
	}
	return ActWriteObject
}
