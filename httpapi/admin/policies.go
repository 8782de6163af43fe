package admin

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

func policyOf(m *iam.Managed, u iam.Use) Policy {
	p := Policy{ID: m.ID, Name: m.Name, ARN: iam.PolicyARN(m.Path, m.Name), Version: m.Default, Attached: u.Attached, Bounds: u.Bounds}
	if v := m.Version(m.Default); v != nil && json.Valid(v.Text) {
		p.Document = v.Text
	}
	return p
}

func (s *Server) listPolicies(r *http.Request, _ httprouter.Params) (any, error) {
	list, err := s.fs.IAM().Policies(r.Context())
	out := []Policy{}
	for i := range list {
		p := policyOf(&list[i].Managed, list[i].Use)
		p.Document = nil
		out = append(out, p)
	}
	return out, err
}

func (s *Server) policy(r *http.Request, p httprouter.Params) (any, error) {
	m, u, err := s.fs.IAM().Policy(r.Context(), "iam:GetPolicy", p.ByName("name"))
	if err != nil {
		return nil, err
	}
	return policyOf(&m, u), nil
}

// putPolicy makes a policy, or puts a new version of it in force.
func (s *Server) putPolicy(r *http.Request, p httprouter.Params) (any, error) {
	var q PutPolicy
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	httpapi.NoteText(r.Context(), "policy", string(q.Document))
	name := p.ByName("name")
	if _, err := s.fs.IAM().PutPolicy(r.Context(), name, q.Document); err != nil {
		return nil, badPolicy(err)
	}
	return s.policy(r, p)
}

func (s *Server) removePolicy(r *http.Request, p httprouter.Params) (any, error) {
	return Policy{Name: p.ByName("name")}, s.fs.IAM().DropPolicy(r.Context(), p.ByName("name"))
}

// holder reads who holds a policy: "user", "group" or "role" and the name.
func holder(kind, name string) (iam.Holder, error) {
	for _, k := range []iam.HolderKind{iam.User, iam.InGroup, iam.InRole} {
		if strings.EqualFold(k.String(), kind) {
			return iam.Holder{Kind: k, Name: name}, nil
		}
	}
	return iam.Holder{}, bad("%q is none of user, group and role", kind)
}

func (s *Server) attachPolicy(r *http.Request, p httprouter.Params) (any, error) {
	h, err := holder(p.ByName("kind"), p.ByName("to"))
	if err != nil {
		return nil, err
	}
	return Attachment{p.ByName("name"), h.Kind.String(), h.Name}, s.fs.IAM().Attach(r.Context(), h, p.ByName("name"))
}

func (s *Server) detachPolicy(r *http.Request, p httprouter.Params) (any, error) {
	h, err := holder(p.ByName("kind"), p.ByName("to"))
	if err != nil {
		return nil, err
	}
	return Attachment{p.ByName("name"), h.Kind.String(), h.Name}, s.fs.IAM().Detach(r.Context(), h, p.ByName("name"))
}

// stated are the condition keys of a simulation. It implements policy.Values.
type stated map[string][]string

// Value implements policy.Values.
func (k stated) Value(key string) ([]string, bool) {
	v, ok := k[key]
	return v, ok
}

// simulate answers for each of who: all users, all roles and strangers unless it says.
func (s *Server) simulate(r *http.Request, _ httprouter.Params) (any, error) {
	var q Simulate
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if q.Action == "" || q.Resource == "" {
		return nil, bad("an action and a resource are needed")
	}
	if !strings.Contains(q.Action, ":") {
		q.Action = "s3:" + q.Action
	}
	if !strings.HasPrefix(q.Resource, "arn:") && strings.HasPrefix(q.Action, "s3:") {
		q.Resource = "arn:aws:s3:::" + q.Resource
	}
	who, err := s.everybody(r, q.Who)
	if err != nil {
		return nil, err
	}
	keys := stated{}
	for key, values := range q.Keys {
		keys[strings.ToLower(key)] = values
	}
	out := []Simulated{}
	for _, w := range who {
		list, err := s.fs.Simulate(r.Context(), w.principal, []string{q.Action}, []string{q.Resource}, keys)
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			out = append(out, Simulated{w.shown, x.Action, x.Resource, x.Allowed, x.Explicit, x.Policy, x.Sid, x.Number, x.Why})
		}
	}
	return out, nil
}

// asked is whom a simulation is about.
type asked struct {
	shown     string
	principal string // an ARN or ID, or vfs.Anonymous
}

// everybody is who a simulation is about.
func (s *Server) everybody(r *http.Request, who []string) (list []asked, err error) {
	for _, w := range who {
		p, err := s.principalOf(r, w)
		if err != nil {
			return nil, err
		}
		list = append(list, asked{w, p})
	}
	if len(who) > 0 {
		return list, nil
	}
	all, err := s.fs.Users().List(r.Context())
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		shown := u.Name
		if shown == vfs.Anonymous { // which means another
			shown = userPrefix + shown
		}
		list = append(list, asked{shown, string(u.ID)})
	}
	roles, err := s.fs.IAM().Roles(r.Context())
	for _, x := range roles {
		list = append(list, asked{rolePrefix + x.Name, x.ID})
	}
	return append(list, asked{vfs.Anonymous, vfs.Anonymous}), err
}

const (
	// rolePrefix begins the names of roles where users are named, too.
	rolePrefix = "role/"
	// userPrefix may begin those of users.
	userPrefix = "user/"
)

// principalOf is how vfs knows who is meant: a user by name or as "user/NAME", a role as
// "role/NAME", an ARN, or who is anonymous.
func (s *Server) principalOf(r *http.Request, who string) (string, error) {
	if who == vfs.Anonymous || strings.HasPrefix(who, "arn:") {
		return who, nil
	}
	if name, ok := strings.CutPrefix(who, rolePrefix); ok {
		x, err := s.fs.IAM().Role(r.Context(), name) // whose ARN has a path
		return x.ID, err
	}
	return users.NewARN(strings.TrimPrefix(who, userPrefix)), nil
}
