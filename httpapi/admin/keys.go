package admin

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/vfs"
	"ogw/vfs/users"
)

const (
	// minKeyID and maxKeyID bound an access key ID (IAM: 16 to 128; other
	// S3 servers issue shorter ones). minSecret is what others accept at least.
	minKeyID, maxKeyID = 3, 128
	minSecret          = 8
	maxSecret          = 256
)

// givenKey is the key that a request names, or else a new one.
func givenKey(id, secret string) users.AccessKey {
	k := users.NewKey(time.Now())
	if id != "" {
		k.ID, k.Secret = id, secret
	}
	return k
}

// validKey checks a key that a request names, if it names one.
func validKey(id, secret string) error {
	if (id == "") != (secret == "") {
		return bad("an access key and its secret go together")
	}
	if id == "" {
		return nil
	}
	if n := len(id); n < minKeyID || n > maxKeyID || !printable(id, "/,=:") {
		return bad("access key: %d to %d printable characters without / , = :", minKeyID, maxKeyID)
	}
	if n := len(secret); n < minSecret || n > maxSecret || !printable(secret, "") {
		return bad("secret key: %d to %d printable characters", minSecret, maxSecret)
	}
	return nil
}

// printable reports whether s is visible ASCII without the bytes of not.
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

// changeKeys changes the keys of a user.
func (s *Server) changeKeys(r *http.Request, name string, change func(keys []users.AccessKey) ([]users.AccessKey, error)) (users.User, error) {
	var after users.User
	err := s.fs.Users().Update(r.Context(), name, func(u *users.User) (err error) {
		u.Keys, err = change(u.Keys)
		after = *u
		return err
	})
	return after, err
}

func (s *Server) rotate(r *http.Request, p httprouter.Params) (any, error) {
	var q Rotate
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	key := users.NewKey(time.Now())
	after, err := s.changeKeys(r, p.ByName("name"), func(keys []users.AccessKey) ([]users.AccessKey, error) {
		if !q.Keep {
			keys = nil
		}
		return append([]users.AccessKey{key}, keys...), nil
	})
	if err != nil {
		return nil, err
	}
	out := userOf(after, false)
	out.Keys[0].Secret = key.Secret
	return out, nil
}

func (s *Server) addKey(r *http.Request, p httprouter.Params) (any, error) {
	var q AddKey
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if err := validKey(q.AccessKey, q.SecretKey); err != nil {
		return nil, err
	}
	key := givenKey(q.AccessKey, q.SecretKey)
	after, err := s.changeKeys(r, p.ByName("name"), func(keys []users.AccessKey) ([]users.AccessKey, error) {
		return append(keys, key), nil
	})
	if err != nil {
		return nil, err
	}
	out := userOf(after, false)
	out.Keys[len(out.Keys)-1].Secret = key.Secret
	return out, nil
}

func (s *Server) removeKey(r *http.Request, p httprouter.Params) (any, error) {
	name, id := p.ByName("name"), p.ByName("key")
	after, err := s.changeKeys(r, name, func(keys []users.AccessKey) ([]users.AccessKey, error) {
		i := slices.IndexFunc(keys, func(k users.AccessKey) bool { return k.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("access key %q of user %q: %w", id, name, vfs.ErrNoSuchUser)
		}
		return slices.Delete(keys, i, i+1), nil
	})
	return userOf(after, false), err
}
