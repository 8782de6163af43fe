package rights

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/policy"
)

// What sts calls the ways to a session of a role.
const (
	assumeRole    = "sts:AssumeRole"
	assumeRoleWeb = "sts:AssumeRoleWithWebIdentity"
)

// AssumeRole begins a session of a role, whose trust policy must let the caller: a user
// or a role by itself, or the store's account, in which policies of the caller decide
// then. A web identity (iam.Assume.Provider) was verified by the door. ErrAccess (STS
// AssumeRole, AssumeRoleWithWebIdentity).
func (u *Rules) AssumeRole(ctx context.Context, q iam.Assume) (iam.Credentials, error) {
	s := SubjectOf(ctx)
	if s == nil {
		return iam.Credentials{}, fmt.Errorf("%w: the program itself is nobody's session", fserr.ErrInvalid)
	}
	action, who := assumeRole, s.trusted()
	if q.Provider != "" {
		action, who = assumeRoleWeb, policy.Principal{Name: policy.Federated(iam.ProviderARN(q.Provider))}
	}
	c, err := u.IAM.Assume(ctx, q, func(r cluster.Reader, trust *policy.Document) error {
		j := Judge{rules: u, R: r, Subject: s}
		return j.assumes(trust, action, who, q.Role)
	})
	if noRole(err) {
		err = s.mayNotAssume(action, q.Role) // which roles are there is shown to whom they trust
	}
	return c, err
}

// trusted is how trust policies know the subject: of the store's account.
func (s *Subject) trusted() policy.Principal {
	who := s.principal()
	who.Account = iam.Account
	return who
}

// assumes returns ErrAccess unless the caller, whom the trust policy of a role knows as
// who, may assume it.
func (j *Judge) assumes(trust *policy.Document, action string, who policy.Principal, role string) error {
	e, _ := trust.Decide(&policy.Request{Action: action, Principal: who, Values: j.policyKeys(nil)})
	may, err := j.passesTrust(e, action, role)
	if err == nil && !may {
		err = j.Subject.mayNotAssume(action, role)
	}
	return err
}

func noRole(err error) bool {
	var missing *iam.Error
	return errors.As(err, &missing) && missing.Code == iam.NoSuchEntity
}

func (s *Subject) mayNotAssume(action, role string) error {
	return &iam.Denied{Message: fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s", s.arn(), action, role)}
}

// passesTrust reports whether the caller may assume a role whose trust policy says e.
func (j *Judge) passesTrust(e policy.Effect, action, role string) (bool, error) {
	if e == policy.Deny || e == policy.None {
		return false, nil
	}
	if Anonymous(j.Subject) || j.Free() {
		return e == policy.Allow || j.Free(), nil
	}
	set, err := j.identity()
	if err != nil || set == nil {
		return err == nil && e == policy.Allow, err
	}
	v := set.Decide(&policy.Request{Action: action, Resource: role, Principal: j.Subject.principal(), Values: j.policyKeys(nil)})
	switch {
	case v.Effect == policy.Deny:
		return false, nil
	case e == policy.Allow:
		return true, nil
	}
	return v.Within && (e == policy.AllowRole || v.Effect == policy.Allow), nil
}
