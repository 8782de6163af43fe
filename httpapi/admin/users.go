package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/cluster"
	"ogw/httpapi/apierr"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

const (
	// FirstUID is where uids of users begin that nobody chose.
	FirstUID = users.FirstUID
	// maxUserName bounds a name: it stands in logs and listings.
	maxUserName = 64
)

func userOf(u users.User, secrets bool) User {
	out := User{ID: string(u.ID), Name: u.Name, UID: u.UID, GID: u.GID, Admin: u.Admin, Keys: []Key{}}
	for _, k := range u.Keys {
		key := Key{ID: k.ID, Created: time.Unix(0, k.Created).UTC()}
		if secrets {
			key.Secret = k.Secret
		}
		out.Keys = append(out.Keys, key)
	}
	return out
}

func (s *Server) listUsers(r *http.Request, _ httprouter.Params) (any, error) {
	all, err := s.fs.Users().List(r.Context())
	out := []User{}
	for _, u := range all {
		out = append(out, userOf(u, false))
	}
	return out, err
}

func (s *Server) addUser(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddUser
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if err := q.validate(); err != nil {
		return nil, err
	}
	u := users.User{Name: q.Name, Admin: q.Admin, Keys: []users.AccessKey{givenKey(q.AccessKey, q.SecretKey)}}
	if q.UID != nil {
		u.UID, u.GID = *q.UID, *q.UID
	}
	also, err := s.mayRead(q.MayRead)
	if err != nil {
		return nil, err
	}
	made, err := s.fs.Users().Make(r.Context(), u, users.Options{FreeUID: q.UID == nil, Inherit: q.Inherit, GID: q.GID, Also: also})
	if errors.Is(err, vfs.ErrUIDTaken) && q.UID != nil {
		err = fmt.Errorf("%w; to hand that on to %s, say so: ogw user add %s --uid %d --inherit", err, q.Name, q.Name, *q.UID)
	}
	if err != nil {
		return nil, err
	}
	return userOf(made, true), nil
}

// mayRead gives a new user the right to read places alone, if there are any.
func (s *Server) mayRead(places []string) (func(cluster.Txn, *users.User) error, error) {
	if places == nil {
		return nil, nil
	}
	text, err := iam.ReadOnly(places)
	if err != nil {
		return nil, bad("%v", err)
	}
	also, err := s.fs.IAM().WithInline(iam.ReadPolicy, text)
	if err != nil {
		return nil, bad("what the user may read: %v", err)
	}
	return also, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", apierr.ErrBadRequest, fmt.Sprintf(format, args...))
}

func badName(name string) error {
	return bad("user name %q: 1 to %d characters of a-z A-Z 0-9 . _ @ - please", name, maxUserName)
}

func (q *AddUser) validate() error {
	if !validUserName(q.Name) {
		return badName(q.Name)
	}
	if q.Inherit && q.UID == nil {
		return bad("who inherits names the uid")
	}
	if q.Admin && q.MayRead != nil {
		return bad("an administrator may do everything, not only read")
	}
	return validKey(q.AccessKey, q.SecretKey)
}

func validUserName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			i > 0 && (c == '.' || c == '_' || c == '@' || c == '-')
		if !ok {
			return false
		}
	}
	return s != "" && len(s) <= maxUserName
}

func (s *Server) removeUser(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	return User{Name: name, Keys: []Key{}}, s.fs.Users().Remove(users.Guarded(r.Context(), s.keepsAdmin(name)), name)
}

// keepsAdmin refuses to leave a store without an administrator: nobody could
// change owners and ACLs any more, and an empty list of users would bring the
// first key back at the next start.
func (s *Server) keepsAdmin(leaving string) users.Guard {
	return func(_ context.Context, r cluster.Reader) error {
		left, last := 0, false
		err := s.fs.Users().Each(r, func(u users.User) error {
			if u.Admin && u.Name != leaving {
				left++
			}
			last = last || u.Admin && u.Name == leaving
			return nil
		})
		if err == nil && last && left == 0 {
			err = fmt.Errorf("%w: %s is the only administrator; add another first (ogw user add NAME --administrator)",
				apierr.ErrBadRequest, leaving)
		}
		return err
	}
}

func (s *Server) renameUser(r *http.Request, p httprouter.Params) (any, error) {
	var q RenameUser
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if !validUserName(q.Name) {
		return nil, badName(q.Name)
	}
	u, err := s.fs.Users().Rename(r.Context(), p.ByName("name"), q.Name)
	return userOf(u, false), err
}
