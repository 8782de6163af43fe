package rest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/httpapi/fair"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// identity is the caller.
type identity struct {
	name    string // for the log
	user    string // "" for what comes with a token, or with nothing
	subject vfs.Subject
}

// authenticator finds out who the caller is. Tokens are kept and compared as their
// SHA-256, in constant time.
type authenticator struct {
	tokens   [][sha256.Size]byte
	users    bool
	accounts accounts
	guess    *guess.Guard // nil: nobody is slowed down
	owner    vfs.Subject  // of tokens, root and the server's own user
	self     int          // uid of the server
}

func newAuthenticator(c Config) authenticator {
	a := authenticator{users: c.Users, accounts: c.FS, guess: c.Guesses, self: os.Geteuid()}
	a.owner = vfs.Subject{UID: c.Owner.UID(), GID: c.Owner.GID(), Groups: c.Owner.Groups(), Admin: true}
	for _, t := range c.Tokens {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(t)))
	}
	return a
}

// open reports whether nobody has to say who they are: the kernel does.
func (a *authenticator) open() bool { return len(a.tokens) == 0 && !a.users }

// identify returns who sent r; apierr.ErrUnauthorized.
func (a *authenticator) identify(r *http.Request) (identity, error) {
	if a.open() {
		return a.identifyLocal(r.Context())
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return identity{}, apierr.ErrUnauthorized
	}
	if name, secret, ok := r.BasicAuth(); ok && a.users {
		httpapi.NoteTarget(r.Context(), "", "as="+name)
		return a.tried(r, "rest user", name, func() (identity, error) {
			return a.identifyUser(r.Context(), credential{name, secret, r.Header.Get("X-Amz-Security-Token")})
		})
	}
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") {
		sum := sha256.Sum256([]byte(token))
		return a.tried(r, "rest token", string(sum[:]), func() (identity, error) { return a.identifyToken(token) })
	}
	return identity{}, fmt.Errorf("%w: authorization scheme not accepted here", apierr.ErrUnauthorized)
}

// tried makes an attempt at an account, unless too many were wrong.
func (a *authenticator) tried(r *http.Request, door, account string, identify func() (identity, error)) (identity, error) {
	try, err := a.guess.Try(fair.Subscriber(r.RemoteAddr), door, account)
	if err != nil {
		return identity{}, err
	}
	who, err := identify()
	switch {
	case err == nil:
		try.Right()
	case errors.Is(err, apierr.ErrUnauthorized):
		try.Wrong()
	}
	return who, err
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
	// The name distinguishes tokens in the log without giving them away.
	return identity{name: "token:" + hex.EncodeToString(sum[:4]), subject: a.owner}, nil
}

// credential is what a client says who it is by.
type credential struct{ name, secret, token string }

// identifyUser takes an access key and its secret, with the session token if it has
// one, or a user's name and any of the secrets.
func (a *authenticator) identifyUser(ctx context.Context, c credential) (identity, error) {
	user, own, session, err := a.accounts.IAM().Credential(ctx, c.name, c.token)
	keys := []users.AccessKey{{Secret: own}}
	if errors.Is(err, vfs.ErrNoSuchUser) {
		var named users.User
		named, err = a.accounts.Users().ByName(ctx, c.name)
		user, keys = &named, named.Keys
	}
	if errors.Is(err, iam.ErrBadToken) || errors.Is(err, iam.ErrTokenExpired) {
		return identity{}, fmt.Errorf("%w: %w", apierr.ErrUnauthorized, err)
	}
	if err != nil && !errors.Is(err, vfs.ErrNoSuchUser) {
		return identity{}, err
	}
	sum, found := sha256.Sum256([]byte(c.secret)), 0
	for _, k := range keys {
		if k.Secret == "" {
			continue // sealed with a key that is not here: it lets nobody in
		}
		want := sha256.Sum256([]byte(k.Secret))
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if err != nil || found == 0 {
		return identity{}, fmt.Errorf("%w: wrong user or password", apierr.ErrUnauthorized)
	}
	return identity{
		name:    user.Name,
		user:    user.Name,
		subject: vfs.Subject{User: user.ID, Name: user.Name, UID: user.UID, GID: user.GID, Admin: user.Admin, Session: session},
	}, nil
}

// challenge adds how to authenticate, if err is about that.
func (a *authenticator) challenge(w http.ResponseWriter, err error) {
	if !errors.Is(err, apierr.ErrUnauthorized) {
		return
	}
	if len(a.tokens) > 0 {
		w.Header().Add("WWW-Authenticate", `Bearer realm="ogw"`)
	}
	if a.open() {
		w.Header().Add("WWW-Authenticate", `Local realm="ogw"`) // by the connection itself
	}
	if a.users {
		w.Header().Add("WWW-Authenticate", `Basic realm="ogw", charset="UTF-8"`)
	}
}
