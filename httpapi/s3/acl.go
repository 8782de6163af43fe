package s3

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"slices"
	"strings"

	"ogw/vfs"
)

const (
	// aclAttr is the bucket attribute, and aclHeader the object's stored
	// header, that keep an ACL as JSON.
	aclAttr   = "s3.acl"
	aclHeader = "X-Ogw-Acl"

	groupAll           = "http://acs.amazonaws.com/groups/global/AllUsers"
	groupAuthenticated = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
	schemaInstance     = "http://www.w3.org/2001/XMLSchema-instance"
)

// The permissions of S3 ACLs.
const (
	aclRead        = "READ"
	aclWrite       = "WRITE"
	aclReadACP     = "READ_ACP"
	aclWriteACP    = "WRITE_ACP"
	aclFullControl = "FULL_CONTROL"
)

// acl grants rights beyond the owner's, who always has all of them.
type acl struct {
	Grants []grant `json:"grants"`
}

// grant gives a user (by name) or a group (by URI) one permission.
type grant struct {
	User       string `json:"user,omitempty"`
	Group      string `json:"group,omitempty"`
	Permission string `json:"permission"`
}

func (a *acl) allows(id identity, permission string) bool {
	for _, g := range a.Grants {
		if g.Permission != permission && g.Permission != aclFullControl {
			continue
		}
		switch {
		case g.Group == groupAll,
			g.Group == groupAuthenticated && !id.anonymous(),
			g.User != "" && g.User == id.name():
			return true
		}
	}
	return false
}

// cannedACL returns the grants of a canned ACL.
func cannedACL(name string) (*acl, error) {
	everyone := func(group string, permissions ...string) *acl {
		a := &acl{}
		for _, p := range permissions {
			a.Grants = append(a.Grants, grant{Group: group, Permission: p})
		}
		return a
	}
	switch name {
	case "private", "bucket-owner-read", "bucket-owner-full-control": // a bucket's owner has all rights to its objects
		return &acl{}, nil
	case "public-read":
		return everyone(groupAll, aclRead), nil
	case "public-read-write":
		return everyone(groupAll, aclRead, aclWrite), nil
	case "authenticated-read":
		return everyone(groupAuthenticated, aclRead), nil
	case "aws-exec-read", "log-delivery-write":
		return nil, newError(codeNotImplemented).withMessage("The canned ACL %s is not implemented.", name)
	}
	return nil, invalidArgument("x-amz-acl", name, "The canned ACL is not known.")
}

// grantHeaders in the order of their permissions.
var grantHeaders = []struct{ header, permission string }{
	{"X-Amz-Grant-Read", aclRead}, {"X-Amz-Grant-Write", aclWrite}, {"X-Amz-Grant-Read-Acp", aclReadACP},
	{"X-Amz-Grant-Write-Acp", aclWriteACP}, {"X-Amz-Grant-Full-Control", aclFullControl},
}

// headerACL reads x-amz-acl or x-amz-grant-*; nil if there is neither.
func (q *request) headerACL(h http.Header) (*acl, error) {
	canned := h.Get("X-Amz-Acl")
	var a *acl
	for _, g := range grantHeaders {
		v := strings.Join(h.Values(g.header), ",")
		if v == "" {
			continue
		}
		if canned != "" {
			return nil, newError(codeInvalidRequest).withMessage("Specifying both Canned ACLs and Header Grants is not allowed")
		}
		if a == nil {
			a = &acl{}
		}
		for _, item := range strings.Split(v, ",") {
			grantee, err := q.parseGrantee(item)
			if err != nil {
				return nil, err
			}
			grantee.Permission = g.permission
			a.Grants = append(a.Grants, grantee)
		}
	}
	if canned != "" {
		return cannedACL(canned)
	}
	if a != nil && len(a.Grants) > maxGrants {
		return nil, newError(codeMalformedACL).withMessage("An ACL has at most %d grants.", maxGrants)
	}
	return a, nil
}

// parseGrantee reads id="name" or uri="group".
func (q *request) parseGrantee(s string) (grant, error) {
	kind, value, ok := strings.Cut(strings.TrimSpace(s), "=")
	value = strings.Trim(strings.TrimSpace(value), `"`)
	if !ok || value == "" {
		return grant{}, invalidArgument("x-amz-grant", s, "A grantee is written id=, uri= or emailAddress=.")
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "id":
		return q.userGrant(value)
	case "uri":
		return groupGrant(value)
	case "emailaddress":
		return grant{}, newError(codeUnresolvableGrant)
	}
	return grant{}, invalidArgument("x-amz-grant", s, "A grantee is written id=, uri= or emailAddress=.")
}

func (q *request) userGrant(name string) (grant, error) {
	_, err := q.fs.GetUser(q.ctx, name)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		return grant{}, invalidArgument("CanonicalUser/ID", name, "Invalid id")
	}
	return grant{User: name}, err
}

func groupGrant(uri string) (grant, error) {
	if uri != groupAll && uri != groupAuthenticated {
		return grant{}, invalidArgument("Group/URI", uri, "Invalid group uri")
	}
	return grant{Group: uri}, nil
}

// aclXML is AccessControlPolicy as clients send it.
type aclXML struct {
	XMLName xml.Name `xml:"AccessControlPolicy"`
	Owner   struct {
		ID string `xml:"ID"`
	} `xml:"Owner"`
	Grants []struct {
		Grantee struct {
			Type  string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
			ID    string `xml:"ID"`
			URI   string `xml:"URI"`
			Email string `xml:"EmailAddress"`
		} `xml:"Grantee"`
		Permission string `xml:"Permission"`
	} `xml:"AccessControlList>Grant"`
}

// bodyACL reads an AccessControlPolicy for something that owner owns.
func (q *request) bodyACL(owner string) (*acl, error) {
	var doc aclXML
	if err := q.readXML(maxConfigBytes, &doc); err != nil {
		var e *apiError
		if errors.As(err, &e) && e.code == codeMalformedXML {
			err = newError(codeMalformedACL)
		}
		return nil, err
	}
	if doc.Owner.ID != "" && doc.Owner.ID != owner {
		return nil, newError(codeAccessDenied).withMessage("The owner of a resource cannot be changed by its ACL.")
	}
	if len(doc.Grants) > maxGrants {
		return nil, newError(codeMalformedACL).withMessage("An ACL has at most %d grants.", maxGrants)
	}
	a := &acl{}
	for _, g := range doc.Grants {
		var out grant
		var err error
		switch {
		case !slices.Contains([]string{aclRead, aclWrite, aclReadACP, aclWriteACP, aclFullControl}, g.Permission):
			err = newError(codeMalformedACL)
		case g.Grantee.URI != "":
			out, err = groupGrant(g.Grantee.URI)
		case g.Grantee.ID == owner && owner != "":
			continue // the owner has all rights anyway
		case g.Grantee.ID != "":
			out, err = q.userGrant(g.Grantee.ID)
		case g.Grantee.Email != "":
			err = newError(codeUnresolvableGrant)
		default:
			err = newError(codeMalformedACL)
		}
		if err != nil {
			return nil, err
		}
		out.Permission = g.Permission
		a.Grants = append(a.Grants, out)
	}
	return a, nil
}

// sendACL answers with an AccessControlPolicy.
func (q *request) sendACL(owner string, a *acl) {
	var x xmlWriter
	x.start("AccessControlPolicy", xmlNamespace)
	x.owner("Owner", owner)
	x.open("AccessControlList")
	for _, g := range append([]grant{{User: owner, Permission: aclFullControl}}, a.Grants...) {
		x.open("Grant")
		if g.Group != "" {
			x.open(`Grantee xmlns:xsi="` + schemaInstance + `" xsi:type="Group"`)
			x.str("URI", g.Group)
		} else {
			x.open(`Grantee xmlns:xsi="` + schemaInstance + `" xsi:type="CanonicalUser"`)
			x.str("ID", g.User)
			x.str("DisplayName", g.User)
		}
		x.end("Grantee")
		x.str("Permission", g.Permission)
		x.end("Grant")
	}
	x.end("AccessControlList")
	x.end("AccessControlPolicy")
	x.send(q.w, q.r, http.StatusOK)
}

func (a *acl) encode() []byte {
	b, _ := json.Marshal(a) // strings only: cannot fail
	return b
}

func decodeACL(b []byte) (*acl, error) {
	a := &acl{}
	if len(b) == 0 {
		return a, nil
	}
	return a, json.Unmarshal(b, a)
}
