package s3

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

const (
	groupAll           = "http://acs.amazonaws.com/groups/global/AllUsers"
	groupAuthenticated = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
)

// permissionNames are S3's words for the rights of an ACL.
var permissionNames = []struct {
	name       string
	permission vfs.Permission
}{
	{"READ", vfs.PermRead}, {"WRITE", vfs.PermWrite}, {"READ_ACP", vfs.PermReadACP},
	{"WRITE_ACP", vfs.PermWriteACP}, {"FULL_CONTROL", vfs.PermFullControl},
}

// groupURIs are S3's names of groups.
var groupURIs = []struct {
	uri     string
	grantee vfs.Grantee
}{{groupAll, vfs.GranteeEverybody}, {groupAuthenticated, vfs.GranteeAuthenticated}}

// aclTarget is what an ACL is for.
type aclTarget struct {
	owner  owner
	bucket *vfs.BucketInfo // that the object lies in; nil for the ACL of a bucket
}

// objectTarget is a new object of the caller.
func (q *request) objectTarget() aclTarget { return aclTarget{q.id.owner(), &q.info} }

// cannedACL returns the grants of a canned ACL.
func (q *request) cannedACL(name string, t aclTarget) (vfs.Grants, error) {
	switch name {
	case "private":
		return vfs.Grants{}, nil
	case "bucket-owner-read":
		return q.toBucketOwner(t, vfs.PermRead), nil
	case "bucket-owner-full-control":
		return q.toBucketOwner(t, vfs.PermFullControl), nil
	case "public-read":
		return vfs.Grants{{Grantee: vfs.GranteeEverybody, Permission: vfs.PermRead}}, nil
	case "public-read-write":
		return vfs.Grants{{Grantee: vfs.GranteeEverybody, Permission: vfs.PermRead},
			{Grantee: vfs.GranteeEverybody, Permission: vfs.PermWrite}}, nil
	case "authenticated-read":
		return vfs.Grants{{Grantee: vfs.GranteeAuthenticated, Permission: vfs.PermRead}}, nil
	case "aws-exec-read", "log-delivery-write":
		return nil, newError(codeNotImplemented).withMessage("The canned ACL %s is not implemented.", name)
	}
	return nil, invalidArgument("x-amz-acl", name, "The canned ACL is not known.")
}

// toBucketOwner grants to a bucket's owner what he can do with its objects anyway:
// S3 shows it. Of buckets it means nothing.
func (q *request) toBucketOwner(t aclTarget, p vfs.Permission) vfs.Grants {
	if t.bucket == nil {
		return vfs.Grants{}
	}
	u, err := q.fs.Users().ByUID(q.ctx, t.bucket.UID)
	switch {
	case err == nil && !t.owner.is(string(u.ID)):
	case p == vfs.PermFullControl: // a local account's, or one's own
		return vfs.Grants{{Grantee: vfs.GranteeOwner, Permission: p}}
	default:
		return vfs.Grants{}
	}
	return vfs.Grants{{Grantee: vfs.GranteeUser, User: u.ID, Permission: p}}
}

// complete returns a list of grants that says what the owner has, if only that it is nothing.
func complete(a vfs.Grants) vfs.Grants {
	if slices.ContainsFunc(a, func(g vfs.Grant) bool { return g.Grantee == vfs.GranteeOwner }) {
		return a
	}
	return append(a, vfs.Grant{Grantee: vfs.GranteeOwner})
}

// grantHeaders in the order of their permissions.
var grantHeaders = []struct {
	header     string
	permission vfs.Permission
}{
	{"X-Amz-Grant-Read", vfs.PermRead}, {"X-Amz-Grant-Write", vfs.PermWrite}, {"X-Amz-Grant-Read-Acp", vfs.PermReadACP},
	{"X-Amz-Grant-Write-Acp", vfs.PermWriteACP}, {"X-Amz-Grant-Full-Control", vfs.PermFullControl},
}

// headerACL reads x-amz-acl or x-amz-grant-*; nil if there is neither. Grants
// are reported to the audit: what is stored with them changes who may read it.
func (q *request) headerACL(h http.Header, t aclTarget) (vfs.Grants, error) {
	a, err := q.parseHeaderACL(h, t)
	if slices.ContainsFunc(a, func(g vfs.Grant) bool { return g.Grantee != vfs.GranteeOwner }) {
		httpapi.NoteRights(q.ctx, grantsText(a))
	}
	return a, err
}

// grantsText shows grants to operators.
func grantsText(a vfs.Grants) string {
	out := []string{"grants="}
	for _, g := range a {
		who := string(g.User)
		switch g.Grantee {
		case vfs.GranteeEverybody:
			who = "everybody"
		case vfs.GranteeAuthenticated:
			who = "users"
		case vfs.GranteeOwner:
			continue // who has all rights anyway
		}
		out = append(out, who+":"+permissionName(g.Permission))
	}
	return strings.Join(out, " ")
}

func (q *request) parseHeaderACL(h http.Header, t aclTarget) (vfs.Grants, error) {
	canned := h.Get("X-Amz-Acl")
	var a vfs.Grants
	for _, g := range grantHeaders {
		v := strings.Join(h.Values(g.header), ",")
		if v == "" {
			continue
		}
		if canned != "" {
			return nil, newError(codeInvalidRequest).withMessage("Specifying both Canned ACLs and Header Grants is not allowed")
		}
		for item := range strings.SplitSeq(v, ",") {
			if len(a) == vfs.MaxGrants {
				return nil, tooManyGrants()
			}
			grant, err := q.parseGrantee(item, t.owner)
			if err != nil {
				return nil, err
			}
			grant.Permission = g.permission
			a = append(a, grant)
		}
	}
	switch {
	case canned != "":
		return q.cannedACL(canned, t)
	case a == nil:
		return nil, nil
	}
	return complete(a), nil
}

func tooManyGrants() error {
	return newError(codeMalformedACL).withMessage("An ACL has at most %d grants.", vfs.MaxGrants)
}

// parseGrantee reads id="user" or uri="group", for something that o owns.
func (q *request) parseGrantee(s string, o owner) (vfs.Grant, error) {
	kind, value, ok := strings.Cut(strings.TrimSpace(s), "=")
	value = strings.Trim(strings.TrimSpace(value), `"`)
	if !ok || value == "" {
		return vfs.Grant{}, invalidArgument("x-amz-grant", s, "A grantee is written id=, uri= or emailAddress=.")
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "id":
		return q.userGrant(value, o)
	case "uri":
		return groupGrant(value)
	case "emailaddress":
		return vfs.Grant{}, newError(codeUnresolvableGrant)
	}
	return vfs.Grant{}, invalidArgument("x-amz-grant", s, "A grantee is written id=, uri= or emailAddress=.")
}

// userGrant takes an ID, or for convenience the name that a user has now.
func (q *request) userGrant(who string, o owner) (vfs.Grant, error) {
	if o.is(who) {
		return vfs.Grant{Grantee: vfs.GranteeOwner}, nil
	}
	u, err := q.userNamed(who)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		return vfs.Grant{}, invalidArgument("CanonicalUser/ID", who, "Invalid id")
	}
	return vfs.Grant{Grantee: vfs.GranteeUser, User: u.ID}, err
}

func groupGrant(uri string) (vfs.Grant, error) {
	for _, g := range groupURIs {
		if g.uri == uri {
			return vfs.Grant{Grantee: g.grantee}, nil
		}
	}
	return vfs.Grant{}, invalidArgument("Group/URI", uri, "Invalid group uri")
}

// parsePermission reads S3's word for a permission.
func parsePermission(name string) (vfs.Permission, bool) {
	for _, p := range permissionNames {
		if p.name == name {
			return p.permission, true
		}
	}
	return 0, false
}

// permissionName is the inverse of parsePermission.
func permissionName(p vfs.Permission) string {
	for _, n := range permissionNames {
		if n.permission == p {
			return n.name
		}
	}
	return ""
}
