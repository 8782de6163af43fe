package admin

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

const (
	// FirstUID is where uids of users begin that nobody chose: above those
	// that systems give to people and services.
	FirstUID = 10000
	// maxUserName bounds a name: it stands in logs and listings.
	maxUserName = 64
	// minKeyID and maxKeyID bound an access key ID (IAM: 16 to 128; other
	// S3 servers issue shorter ones). minSecret is what others accept at least.
	minKeyID, maxKeyID = 3, 128
	minSecret          = 8
	maxSecret          = 256
)

// NewKey makes an access key at random, in the shape that S3 tools expect:
// 20 characters with 95 random bits and 40 with 240.
func NewKey(now time.Time) vfs.AccessKey {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := []byte("OGW0")
	var random [16]byte
	rand.Read(random[:])
	for _, b := range random {
		id = append(id, letters[b&31])
	}
	var secret [30]byte
	rand.Read(secret[:])
	return vfs.AccessKey{ID: string(id), Secret: base64.URLEncoding.EncodeToString(secret[:]), Created: now.UnixNano()}
}

func userOf(u vfs.User, secrets bool) User {
	out := User{Name: u.Name, UID: u.UID, GID: u.GID, Admin: u.Admin, Keys: []Key{}}
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
	users, err := s.FS.ListUsers(r.Context())
	out := []User{}
	for _, u := range users {
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
	u := vfs.User{Name: q.Name, Admin: q.Admin, Keys: []vfs.AccessKey{NewKey(time.Now())}}
	if q.AccessKey != "" {
		u.Keys[0].ID, u.Keys[0].Secret = q.AccessKey, q.SecretKey
	}
	if q.UID != nil {
		u.UID = *q.UID
	} else {
		uid, err := s.freeUID(r)
		if err != nil {
			return nil, err
		}
		u.UID = uid
	}
	u.GID = u.UID
	if q.GID != nil {
		u.GID = *q.GID
	}
	if err := s.FS.AddUser(r.Context(), u); err != nil {
		return nil, err
	}
	return userOf(u, true), nil
}

// freeUID returns a uid that no user has. Two who ask at once may get the
// same; they can be given others by hand.
func (s *Server) freeUID(r *http.Request) (uint32, error) {
	users, err := s.FS.ListUsers(r.Context())
	next := uint32(FirstUID)
	for _, u := range users {
		if u.UID >= next && u.UID < 1<<31 {
			next = u.UID + 1
		}
	}
	return next, err
}

func (q *AddUser) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", apierr.ErrBadRequest, fmt.Sprintf(format, args...))
	}
	if !validUserName(q.Name) {
		return bad("user name %q: 1 to %d characters of a-z A-Z 0-9 . _ @ - please", q.Name, maxUserName)
	}
	if (q.AccessKey == "") != (q.SecretKey == "") {
		return bad("an access key and its secret go together")
	}
	if q.AccessKey == "" {
		return nil
	}
	if n := len(q.AccessKey); n < minKeyID || n > maxKeyID || !printable(q.AccessKey, "/,=:") {
		return bad("access key: %d to %d printable characters without / , = :", minKeyID, maxKeyID)
	}
	if n := len(q.SecretKey); n < minSecret || n > maxSecret || !printable(q.SecretKey, "") {
		return bad("secret key: %d to %d printable characters", minSecret, maxSecret)
	}
	return nil
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

// printable tells whether s is visible ASCII without the bytes of not.
func printable(s, not string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
		for j := 0; j < len(not); j++ {
			if s[i] == not[j] {
				return false
			}
		}
	}
	return true
}

func (s *Server) removeUser(r *http.Request, p httprouter.Params) (any, error) {
	name := p.ByName("name")
	if err := s.keepsAdmin(r, name); err != nil {
		return nil, err
	}
	return User{Name: name, Keys: []Key{}}, s.FS.RemoveUser(r.Context(), name)
}

// keepsAdmin refuses to leave a store without an administrator: nobody could
// change owners and ACLs any more, and an empty list of users would bring the
// first key back at the next start.
func (s *Server) keepsAdmin(r *http.Request, leaving string) error {
	users, err := s.FS.ListUsers(r.Context())
	if err != nil {
		return err
	}
	left, last := 0, false
	for _, u := range users {
		if u.Admin && u.Name != leaving {
			left++
		}
		last = last || u.Admin && u.Name == leaving
	}
	if last && left == 0 {
		return fmt.Errorf("%w: %s is the only administrator; add another first (ogw user add NAME --administrator)",
			apierr.ErrBadRequest, leaving)
	}
	return nil
}

func (s *Server) rotate(r *http.Request, p httprouter.Params) (any, error) {
	var q Rotate
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	key := NewKey(time.Now())
	var after vfs.User
	err := s.FS.UpdateUser(r.Context(), p.ByName("name"), func(u *vfs.User) error {
		keys := []vfs.AccessKey{key}
		if q.Keep {
			keys = append(keys, u.Keys...)
		}
		u.Keys = keys
		after = *u
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.KeysChanged != nil {
		if err := s.KeysChanged(after); err != nil {
			return nil, err
		}
	}
	out := userOf(after, false)
	out.Keys[0].Secret = key.Secret
	return out, nil
}
