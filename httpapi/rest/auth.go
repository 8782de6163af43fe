package rest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// identity is who asks.
type identity struct {
	name  string // for the log
	id    string // of a user; "" for tokens
	user  string // "" for what comes with a token, or with nothing
	cred  vfs.Cred
	admin bool
}

// authenticator finds out who asks. Tokens are kept and compared as their
// SHA-256, in constant time.
type authenticator struct {
	tokens [][sha256.Size]byte
	users  bool
	owner  vfs.Cred
}

func newAuthenticator(c Config) authenticator {
	a := authenticator{users: c.Users, owner: c.Owner}
	a.owner.Trusted = true // this door checked
	for _, t := range c.Tokens {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(t)))
	}
	return a
}

// open tells that nobody has to say who they are.
func (a *authenticator) open() bool { return len(a.tokens) == 0 && !a.users }

// identify returns who sent r; apierr.ErrUnauthorized.
func (a *authenticator) identify(r *http.Request, fs *vfs.FS) (identity, error) {
	if a.open() {
		return identity{name: "anonymous", cred: a.owner, admin: true}, nil
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return identity{}, apierr.ErrUnauthorized
	}
	if name, secret, ok := r.BasicAuth(); ok && a.users {
		return a.identifyUser(r.Context(), fs, name, secret)
	}
	scheme, token, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Bearer") {
		return a.identifyToken(strings.TrimSpace(token))
	}
	return identity{}, fmt.Errorf("%w: authorization scheme not accepted here", apierr.ErrUnauthorized)
}

func (a *authenticator) identifyToken(token string) (identity, error) {
	sum := sha256.Sum256([]byte(token))
	found := 0
	for i := range a.tokens {
		found |= subtle.ConstantTimeCompare(sum[:], a.tokens[i][:])
	}
	if found == 0 {
		return identity{}, fmt.Errorf("%w: wrong token", apierr.ErrUnauthorized)
	}
	// The name tells tokens apart in the log without giving them away.
	return identity{name: "token:" + hex.EncodeToString(sum[:4]), cred: a.owner, admin: true}, nil
}

// identifyUser takes an access key and its secret, or a user's name and any
// of the secrets.
func (a *authenticator) identifyUser(ctx context.Context, fs *vfs.FS, name, secret string) (identity, error) {
	user, key, err := fs.UserByKey(ctx, name)
	keys := []vfs.AccessKey{key}
	if errors.Is(err, vfs.ErrNoSuchUser) {
		user, err = fs.GetUser(ctx, name)
		keys = user.Keys
	}
	if err != nil && !errors.Is(err, vfs.ErrNoSuchUser) {
		return identity{}, err
	}
	sum, found := sha256.Sum256([]byte(secret)), 0
	for _, k := range keys {
		want := sha256.Sum256([]byte(k.Secret))
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if err != nil || found == 0 {
		return identity{}, fmt.Errorf("%w: wrong user or password", apierr.ErrUnauthorized)
	}
	return identity{
		name:  user.Name,
		id:    string(user.ID),
		user:  user.Name,
		cred:  vfs.Cred{UID: user.UID, GID: user.GID, Trusted: true},
		admin: user.Admin,
	}, nil
}

// challenge says how to authenticate, if err is about that.
func (a *authenticator) challenge(w http.ResponseWriter, err error) {
	if !errors.Is(err, apierr.ErrUnauthorized) {
		return
	}
	if len(a.tokens) > 0 {
		w.Header().Add("WWW-Authenticate", `Bearer realm="ogw"`)
	}
	if a.users {
		w.Header().Add("WWW-Authenticate", `Basic realm="ogw", charset="UTF-8"`)
	}
}

// authorize lets administrators do everything, and others work in buckets
// that they own or that do not exist yet.
func (s *Server) authorize(r *request) error {
	if r.who.admin {
		return nil
	}
	bucket, _, below := strings.Cut(r.key, "/")
	if !below || !vfs.ValidBucketName(bucket) {
		return fmt.Errorf("%w: only administrators use paths outside of buckets", apierr.ErrForbidden)
	}
	info, err := s.fs.HeadBucket(r.Context(), bucket)
	switch {
	case errors.Is(err, vfs.ErrNoSuchBucket):
		return nil
	case err != nil:
		return err
	case info.UID != r.who.cred.UID:
		return fmt.Errorf("%w: the bucket belongs to another user", apierr.ErrForbidden)
	}
	return nil
}
