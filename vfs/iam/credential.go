package iam

import (
	"context"
	"errors"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// Credential returns the caller with an access key and a session token, "" for none, the
// secret that a signature goes by, and the session if there is one. Nobody changes the
// caller, who is shared. Also fserr.ErrNoSuchUser, ErrSealed.
func (d *Directory) Credential(ctx context.Context, key, token string) (u *users.User, secret string, s *Session, err error) {
	if token == "" {
		h, err := d.users.Holder(ctx, key)
		if err != nil {
			return nil, "", nil, err
		}
		return &h.User, h.Key.Secret, nil, nil
	}
	caller, s, err := d.sessionOf(ctx, key, token)
	if err != nil {
		return nil, "", nil, err
	}
	return &caller, s.Secret, s, nil
}

// sessionOf returns the caller with an access key and a session token, and the session,
// whose secret the signature goes by: as long as its time lasts and all that it came
// from is there. ErrBadToken, ErrTokenExpired.
func (d *Directory) sessionOf(ctx context.Context, key, token string) (u users.User, s *Session, err error) {
	if s, err = d.tokens.session(ctx, token); err != nil {
		return u, nil, err
	}
	switch {
	case s.Key != key:
		return u, nil, ErrBadToken
	case d.now().Unix() >= s.Expires:
		return u, nil, ErrTokenExpired
	}
	if s.Parent != "" {
		if u, _, err = d.users.ByKey(ctx, s.Parent); noSuchUser(err) {
			err = ErrBadToken
		}
		if err != nil {
			return u, nil, err
		}
	}
	if !s.Role() {
		if u.ID != s.Who {
			return u, nil, ErrBadToken
		}
		u.Admin = u.Admin && !s.Federated()
		return u, s, nil
	}
	err = d.store.View(ctx, func(r cluster.Reader) error {
		if err := vouched(r, s); err != nil {
			return err
		}
		set, err := d.SetOf(r, s.Who)
		if errors.Is(err, fserr.ErrNotExist) {
			return ErrBadToken
		}
		if err == nil {
			u = s.user(set.role)
		}
		return err
	})
	return u, s, err
}

// vouched returns ErrBadToken unless the identity provider of a session is there, if it
// has one, and is the one that vouched: another of the same URL was created later. A
// session knows its second only, in which its provider may have been created.
func vouched(r cluster.Reader, s *Session) error {
	if s.Provider == "" {
		return nil
	}
	v, err := r.Get(record.ProviderKey(s.Provider))
	if err != nil {
		return err
	}
	if v == nil {
		return ErrBadToken
	}
	p, err := record.DecodeProvider(s.Provider, v)
	if err == nil && time.Unix(0, p.Created).Unix() > s.Issued {
		err = ErrBadToken
	}
	return err
}
