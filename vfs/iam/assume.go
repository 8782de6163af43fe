package iam

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// Bounds of sessions (STS). Times are in seconds.
const (
	maxSessionName    = 64
	minSessionName    = 2
	maxFederated      = 32
	maxSessionPolicy  = 2048
	maxManagedSession = 10
	defaultUserHours  = 43200
	maxUserSession    = 129600
)

// Assume asks for a session of a role.
type Assume struct {
	Role     string // ARN
	Session  string // name
	Duration int    // seconds; 0 is an hour
	Policy   []byte // bounds the session; nil: none does
	Managed  []string
	// Key is the access key that asks, "" for a web identity.
	Key string
	// By is the session that asks, nil if none does.
	By *Session
	// Provider is the URL of who vouched for a web identity, "" if nobody did.
	Provider string
}

// Credentials are those of a new session.
type Credentials struct {
	*Session
	Token string
	// PackedPercent is how much of what a token may be its policies take.
	PackedPercent int
}

// validAssume checks what can be checked without a look at the store.
func validAssume(q *Assume) error {
	if len(q.Session) < minSessionName {
		return fault(ValidationError, "1 validation error detected: Value '%s' at 'roleSessionName' failed to satisfy constraint: Member must have length greater than or equal to %d", q.Session, minSessionName)
	}
	if err := validName("roleSessionName", q.Session, maxSessionName); err != nil {
		return err
	}
	if q.Duration == 0 {
		q.Duration = defaultSession
	}
	if q.Duration < minSession || q.Duration > maxMaxSession {
		return badDuration(q.Duration, maxMaxSession)
	}
	return validSessionPolicies(q.Policy, q.Managed)
}

func badDuration(seconds, most int) error {
	return fault(ValidationError, "1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy constraint: Member must have value between %d and %d", seconds, minSession, most)
}

// Assume begins a session of a role, if may lets the caller: it gets the role's
// trust policy, in one snapshot. A role that is not there is refused as one that
// does not trust.
func (d *Directory) Assume(ctx context.Context, q Assume, may func(r cluster.Reader, trust *policy.Document) error) (c Credentials, err error) {
	if err := validAssume(&q); err != nil {
		return c, err
	}
	s := &Session{Name: q.Session, ARN: q.Role, Parent: q.Key, Provider: q.Provider, Policy: q.Policy}
	if q.By != nil {
		s.Parent, s.Provider = q.By.Parent, q.By.Provider
	}
	err = d.store.View(ctx, func(r cluster.Reader) error {
		x, trust, err := d.Trust(r, q.Role)
		if err != nil {
			return err
		}
		if err := may(r, trust); err != nil {
			return err
		}
		if q.Duration > x.MaxSession {
			return fault(ValidationError, "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
		}
		if q.By != nil && q.By.Role() && q.Duration > maxChained {
			return fault(ValidationError, "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
		}
		s.Who = users.ID(x.ID)
		s.Managed, err = managedIDs(r, q.Managed)
		return err
	})
	if err != nil {
		return c, err
	}
	return d.begin(ctx, s, q.Duration)
}

// Trust returns the role of an ARN, and its trust policy. NoSuchEntity.
func (d *Directory) Trust(r cluster.Reader, arn string) (x Role, trust *policy.Document, err error) {
	path, name := nameOfARN(roleARN, arn)
	if x, err = roleNamed(r, name); err == nil && path != x.Path {
		err = fault(NoSuchEntity, "The role with name %s cannot be found.", name)
	}
	if err == nil {
		trust, err = compileTrust(x.Trust)
	}
	return x, trust, err
}

// UserSession begins a session of the user who holds an access key; 0 seconds are
// twelve hours (STS GetSessionToken).
func (d *Directory) UserSession(ctx context.Context, key string, seconds int) (c Credentials, err error) {
	if seconds == 0 {
		seconds = defaultUserHours
	}
	if seconds < minSession || seconds > maxUserSession {
		return c, badDuration(seconds, maxUserSession)
	}
	u, _, err := d.users.ByKey(ctx, key)
	if err != nil {
		return c, err
	}
	return d.begin(ctx, &Session{Who: u.ID, Parent: key}, seconds)
}

// Federate asks for credentials of somebody whom a user vouches for.
type Federate struct {
	Name     string
	Duration int    // seconds; 0 is twelve hours
	Policy   []byte // what they may do, as far as the user may; nil: what Managed say
	Managed  []string
	Key      string // the user's access key
}

// Federation begins the session of a federated user (STS GetFederationToken).
func (d *Directory) Federation(ctx context.Context, q Federate) (c Credentials, err error) {
	if len(q.Name) < minSessionName {
		return c, fault(ValidationError, "1 validation error detected: Value '%s' at 'name' failed to satisfy constraint: Member must have length greater than or equal to %d", q.Name, minSessionName)
	}
	if err := validName("name", q.Name, maxFederated); err != nil {
		return c, err
	}
	if q.Duration == 0 {
		q.Duration = defaultUserHours
	}
	if q.Duration < minSession || q.Duration > maxUserSession {
		return c, badDuration(q.Duration, maxUserSession)
	}
	if err := validSessionPolicies(q.Policy, q.Managed); err != nil {
		return c, err
	}
	u, _, err := d.users.ByKey(ctx, q.Key)
	if err != nil {
		return c, err
	}
	s := &Session{Who: u.ID, ARN: stsARN + users.AccountNumber(u.UID) + federatedUser + q.Name, Parent: q.Key, Policy: q.Policy}
	err = d.store.View(ctx, func(r cluster.Reader) (err error) {
		s.Managed, err = managedIDs(r, q.Managed)
		return err
	})
	if err != nil {
		return c, err
	}
	return d.begin(ctx, s, q.Duration)
}

// validSessionPolicies checks the bounds of the policies of a session.
func validSessionPolicies(text []byte, managed []string) error {
	if len(text) > maxSessionPolicy {
		return fault(ValidationError, "1 validation error detected: Value at 'policy' failed to satisfy constraint: Member must have length less than or equal to %d", maxSessionPolicy)
	}
	if len(managed) > maxManagedSession {
		return fault(ValidationError, "1 validation error detected: Value at 'policyArns' failed to satisfy constraint: Member must have length less than or equal to %d", maxManagedSession)
	}
	return nil
}

// managedIDs are the IDs of managed policies.
func managedIDs(r cluster.Reader, arns []string) (ids []string, err error) {
	for _, arn := range arns {
		m, err := managedNamed(r, arn)
		if err != nil {
			return nil, err
		}
		ids = append(ids, m.ID)
	}
	return ids, nil
}

// begin gives a session its key, its time and its token.
func (d *Directory) begin(ctx context.Context, s *Session, seconds int) (c Credentials, err error) {
	var secret [30]byte
	rand.Read(secret[:])
	s.Key, s.Secret = record.NewID("OGWT"), base64.StdEncoding.EncodeToString(secret[:])
	s.Issued = d.now().Unix()
	s.Expires = s.Issued + int64(seconds)
	if err := s.compile(); err != nil {
		return c, err
	}
	c = Credentials{Session: s}
	if n := len(s.Policy) + len(s.Managed); n > 0 {
		c.PackedPercent = max(1, 100*(len(s.Policy)+len(s.Managed)*len(s.Who))/(2*maxSessionPolicy))
	}
	c.Token, err = d.tokens.seal(ctx, s)
	return c, err
}

// ExpiresAt is when the session ends.
func (s *Session) ExpiresAt() time.Time { return time.Unix(s.Expires, 0).UTC() }
