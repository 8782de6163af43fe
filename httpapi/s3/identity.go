package s3

import (
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// identity is the caller; the zero value is anonymous.
type identity struct {
	user    *users.User  // shared, never changed
	session *iam.Session // nil: an access key of the user's
}

func (i identity) anonymous() bool { return i.user == nil }

func (i identity) name() string {
	if i.user == nil {
		return ""
	}
	return i.user.Name
}

// id is who the grants of ACLs are for.
func (i identity) id() vfs.UserID {
	if i.user == nil {
		return ""
	}
	return i.user.ID
}

// subject is the identity in the terms of vfs.
func (i identity) subject() vfs.Subject {
	if i.user == nil {
		return *vfs.Nobody
	}
	return vfs.Subject{User: i.id(), Name: i.name(), UID: i.user.UID, GID: i.user.GID, Admin: i.user.Admin, Session: i.session}
}

// cred owns what the identity makes.
func (i identity) cred() *vfs.Cred {
	s := i.subject()
	return vfs.NewCred(s.UID, s.GID)
}
