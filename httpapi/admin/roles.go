package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/vfs/iam"
	"ogw/vfs/policy"
)

func roleOf(x *iam.Role) Role {
	out := Role{ID: x.ID, Name: x.Name, ARN: iam.RoleARN(x.Path, x.Name), UID: x.UID, MaxSession: x.MaxSession, Created: time.Unix(0, x.Created).UTC()}
	if json.Valid(x.Trust) {
		out.Trust = x.Trust
	}
	return out
}

// badPolicy returns what is wrong with a document as an error of the request.
func badPolicy(err error) error {
	var malformed *policy.Error
	if errors.As(err, &malformed) {
		return fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
	}
	return err
}

func (s *Server) listRoles(r *http.Request, _ httprouter.Params) (any, error) {
	list, err := s.fs.IAM().Roles(r.Context())
	out := []Role{}
	for i := range list {
		out = append(out, roleOf(&list[i]))
	}
	return out, err
}

func (s *Server) role(r *http.Request, p httprouter.Params) (any, error) {
	return s.showRole(r, p.ByName("name"))
}

func (s *Server) showRole(r *http.Request, name string) (any, error) {
	x, err := s.fs.IAM().Role(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return roleOf(&x), nil
}

func (s *Server) addRole(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddRole
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	httpapi.NoteText(r.Context(), "trust", string(q.Trust))
	if _, err := s.fs.IAM().CreateRole(r.Context(), iam.NewRole{Name: q.Name, Trust: q.Trust, MaxSession: q.MaxSession}); err != nil {
		return nil, badPolicy(err)
	}
	return s.showRole(r, q.Name)
}

// setTrust replaces who may assume a role.
func (s *Server) setTrust(r *http.Request, p httprouter.Params) (any, error) {
	var q AddRole
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	httpapi.NoteText(r.Context(), "trust", string(q.Trust))
	if err := s.fs.IAM().SetTrust(r.Context(), p.ByName("name"), q.Trust); err != nil {
		return nil, badPolicy(err)
	}
	return s.role(r, p)
}

func (s *Server) removeRole(r *http.Request, p httprouter.Params) (any, error) {
	return Role{Name: p.ByName("name")}, s.fs.IAM().DropRole(r.Context(), p.ByName("name"))
}

// revokeRole ends the sessions that were begun before now.
func (s *Server) revokeRole(r *http.Request, p httprouter.Params) (any, error) {
	if err := s.fs.IAM().Revoke(r.Context(), p.ByName("name")); err != nil {
		return nil, err
	}
	return s.role(r, p)
}

func (s *Server) listGroups(r *http.Request, _ httprouter.Params) (any, error) {
	list, err := s.fs.IAM().Groups(r.Context())
	if err != nil {
		return nil, err
	}
	out := []Group{}
	for _, g := range list {
		shown, err := s.showGroup(r, g.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, nil
}

func (s *Server) showGroup(r *http.Request, name string) (Group, error) {
	g, members, err := s.fs.IAM().Group(r.Context(), name)
	out := Group{ID: g.ID, Name: g.Name, ARN: iam.GroupARN(g.Path, g.Name), Users: []string{}}
	for _, u := range members {
		out.Users = append(out.Users, u.Name)
	}
	return out, err
}

func (s *Server) addGroup(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddGroup
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if _, err := s.fs.IAM().CreateGroup(r.Context(), q.Name, ""); err != nil {
		return nil, err
	}
	return s.showGroup(r, q.Name)
}

func (s *Server) removeGroup(r *http.Request, p httprouter.Params) (any, error) {
	return Group{Name: p.ByName("name"), Users: []string{}}, s.fs.IAM().DeleteGroup(r.Context(), p.ByName("name"))
}

func (s *Server) addMember(r *http.Request, p httprouter.Params) (any, error) {
	if err := s.fs.IAM().AddMember(r.Context(), p.ByName("name"), p.ByName("user")); err != nil {
		return nil, err
	}
	return s.showGroup(r, p.ByName("name"))
}

func (s *Server) removeMember(r *http.Request, p httprouter.Params) (any, error) {
	if err := s.fs.IAM().RemoveMember(r.Context(), p.ByName("name"), p.ByName("user")); err != nil {
		return nil, err
	}
	return s.showGroup(r, p.ByName("name"))
}
