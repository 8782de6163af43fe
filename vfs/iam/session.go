package iam

import (
	"fmt"
	"strings"
	"time"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// Session is what temporary credentials stand for: a user for some hours, or a role
// that somebody assumed. It is never changed.
type Session struct {
	// Key and Secret are the access key that goes with the token.
	Key, Secret string
	// Who is the ID of the user or role.
	Who users.ID
	// ARN and Name are those of the role and of this session of it, "" for a user. A
	// federated user has an ARN alone.
	ARN, Name string
	// Parent is the access key that it came from, also by way of other roles, "" for
	// a web identity: the session ends with it.
	Parent string
	// Provider is the URL of the identity provider that vouched, "" if none did: the
	// session ends with it.
	Provider string
	Issued   int64 // Unix seconds
	Expires  int64 // Unix seconds
	// Policy and Managed bound what the role allows: a text, and the IDs of managed
	// policies.
	Policy  []byte
	Managed []string

	id       string   // Who and Name as policies know them
	compiled []source // Policy
}

// Role reports whether it is a session of a role.
func (s *Session) Role() bool { return s.Name != "" }

// Federated reports whether it is that of somebody whom a user vouches for, and lets do
// no more than the policies of the session (STS GetFederationToken).
func (s *Session) Federated() bool { return s.Name == "" && s.ARN != "" }

// ID is what policies know a session of a role or a federated user by, and aws:userid.
func (s *Session) ID() string { return s.id }

// SessionARN is the ARN of a session of a role, or of a federated user.
func (s *Session) SessionARN() string {
	if s.Federated() {
		return s.ARN
	}
	return SessionARN(s.ARN[strings.LastIndexByte(s.ARN, '/')+1:], s.Name)
}

// User is who a session of a role is: the owner of what it makes.
func (s *Session) user(x *Role) users.User {
	return users.User{ID: s.Who, Name: x.Name + "/" + s.Name, UID: x.UID, GID: x.UID}
}

const sessionVersion = 1

func (s *Session) encode() []byte {
	var e record.Encoder
	e.Byte(sessionVersion)
	for _, text := range []string{s.Key, s.Secret, string(s.Who), s.ARN, s.Name, s.Parent, s.Provider} {
		e.Str(text)
	}
	e.Int(s.Issued)
	e.Int(s.Expires)
	e.Bytes(s.Policy)
	e.Str(strings.Join(s.Managed, " "))
	return e.B
}

func decodeSession(b []byte) (*Session, error) {
	d := record.Decoder{B: b, What: "session"}
	if d.Byte() != sessionVersion {
		d.Fail()
	}
	s := &Session{}
	var who string
	for _, text := range []*string{&s.Key, &s.Secret, &who, &s.ARN, &s.Name, &s.Parent, &s.Provider} {
		*text = d.Str()
	}
	s.Who, s.Issued, s.Expires, s.Policy = users.ID(who), d.Int(), d.Int(), d.Bytes()
	s.Managed = strings.Fields(d.Str())
	if err := d.End(); err != nil {
		return nil, err
	}
	return s, s.compile()
}

// compile makes what is derived from the fields.
func (s *Session) compile() error {
	s.id = string(s.Who)
	switch {
	case s.Role():
		s.id += ":" + s.Name
	case s.Federated():
		account, name, ok := strings.Cut(strings.TrimPrefix(s.ARN, stsARN), federatedUser)
		if !ok {
			return fmt.Errorf("%w: session of %q", fserr.ErrCorrupt, s.ARN)
		}
		s.id = account + ":" + name
	}
	if len(s.Policy) == 0 {
		return nil
	}
	doc, err := compile(s.Policy)
	if err != nil {
		return err
	}
	s.compiled = []source{{doc, "the session policy"}}
	return nil
}

// Imagined is a session of a role that nobody began, "" for any name, to find what one may
// do.
func Imagined(x *Role, name string, now time.Time) *Session {
	if name == "" {
		name = "any"
	}
	s := &Session{Who: users.ID(x.ID), ARN: RoleARN(x.Path, x.Name), Name: name, Issued: now.Unix()}
	s.id = x.ID + ":" + name
	return s
}
