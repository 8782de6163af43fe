package rights

import (
	"context"
	"fmt"

	"ogw/vfs/iam"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// Subject is the caller for object operations. It comes with the context
// (WithSubject); without one the program itself asks, which may do everything.
// The zero value is nobody: who is neither a user, an administrator nor local
// is anonymous, and owns nothing, whatever the uid.
type Subject struct {
	// User is the user's ID, which grants and policies name.
	User record.UserID
	// Name is the user's name of now, for policies.
	Name string
	// UID, GID and Groups are what POSIX modes go by, and own what is made.
	UID    uint32
	GID    uint32
	Groups []uint32
	// Admin may do everything. What an administrator overwrites stays its
	// owner's.
	Admin bool
	// Local is a uid of this machine that came through an object door: modes
	// and POSIX ACLs are the whole truth, as over NFS, and grants give nothing.
	Local bool
	// Session is what a user or role asks by, nil for an access key of a user's. The
	// role is User then.
	Session *iam.Session
	// Call is what else policies go by; nil: they see usual actions without keys.
	Call *Call
}

// Call is what a door knows of one request that policies go by.
type Call struct {
	// Act is the action that the request is about, and Action what policies call it
	// ("s3:PutObjectTagging"); "" for the usual name.
	Act    Action
	Action string
	// Values are the condition keys that the request has, beside those about the user
	// and the time. It may be nil.
	Values policy.Values
}

// Nobody is the subject of anonymous requests.
var Nobody = &Subject{UID: perm.NobodyUID, GID: perm.NobodyUID}

type subjectKey struct{}

// WithSubject returns a context whose object operations are asked for by s and
// checked against its rights; nil is Nobody. s must not be changed afterwards.
func WithSubject(ctx context.Context, s *Subject) context.Context {
	return &SubjectContext{ctx, s}
}

// SubjectContext is the context of WithSubject, for who keeps it in a structure
// of their own. Before Subject is set, Nobody asks.
type SubjectContext struct {
	context.Context
	Subject *Subject
}

// Value implements context.Context.
func (c *SubjectContext) Value(key any) any {
	if key == (subjectKey{}) {
		if c.Subject == nil {
			return Nobody
		}
		return c.Subject
	}
	return c.Context.Value(key)
}

// SubjectOf returns the caller, nil for the program itself.
func SubjectOf(ctx context.Context) *Subject {
	s, _ := ctx.Value(subjectKey{}).(*Subject)
	return s
}

// Anonymous reports whether nobody said who the caller is.
func Anonymous(s *Subject) bool { return s.User == "" && !s.Admin && !s.Local }

// MayAll reports whether nothing is to be checked.
func MayAll(s *Subject) bool { return s == nil || s.Admin }

// KeepsOwner reports whether what s overwrites stays its owner's: it is S3's
// rule that the writer owns.
func KeepsOwner(s *Subject) bool { return MayAll(s) || s.Local }

// denied is the error of who has no right to act.
func (s *Subject) denied(act Action) error {
	who := string(s.User)
	switch {
	case Anonymous(s):
		who = "anonymous"
	case who == "":
		who = fmt.Sprint("uid ", s.UID)
	}
	return fmt.Errorf("%s may not %s: %w", who, act, fserr.ErrAccess)
}

// inSession reports whether s is a session of a role, or a federated user.
func (s *Subject) inSession() bool {
	return s.Session != nil && (s.Session.Role() || s.Session.Federated())
}

// inRole reports whether s is a session of a role.
func (s *Subject) inRole() bool { return s.Session != nil && s.Session.Role() }

// arn is how messages and policies name s.
func (s *Subject) arn() string {
	switch {
	case s.User == "":
		return "anonymous"
	case s.inSession():
		return s.Session.SessionARN()
	}
	return users.ARN(s.UID, s.Name)
}

// Owns reports whether s is the owner of n.
func Owns(s *Subject, n *record.Inode) bool { return !Anonymous(s) && s.UID == n.UID }

// CredOf is s for checks of modes, and owns what s makes. The program itself is
// the superuser.
func CredOf(s *Subject) *perm.Cred {
	if s == nil {
		return perm.Root
	}
	if Anonymous(s) {
		return perm.NewCred(perm.NobodyUID, perm.NobodyUID)
	}
	return perm.NewCred(s.UID, s.GID, s.Groups...)
}

// policyAction is what policies call act, "" if nobody said it: nothing is decided then.
func (s *Subject) policyAction(act Action) string {
	if c := s.Call; c != nil && c.Act == act && c.Action != "" {
		return c.Action
	}
	return policyActions[act]
}

// principal is how policies name the subject.
func (s *Subject) principal() policy.Principal {
	if Anonymous(s) {
		return policy.Principal{}
	}
	if s.inRole() {
		return policy.Principal{ID: string(s.User), Name: s.Session.ID(), Account: iam.Account}
	}
	if s.inSession() {
		return policy.Principal{ID: string(s.User), Name: s.Session.ID(), Account: string(s.User)}
	}
	return policy.Principal{ID: string(s.User), Account: string(s.User)}
}
