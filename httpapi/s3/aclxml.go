package s3

import (
	"encoding/xml"
	"net/http"
	"slices"

	"ogw/vfs"
)

const schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"

// aclXML is AccessControlPolicy as clients send it.
type aclXML struct {
	XMLName xml.Name `xml:"AccessControlPolicy"`
	Owner   struct {
		ID string `xml:"ID"`
	} `xml:"Owner"`
	Grants []grantXML `xml:"AccessControlList>Grant"`
}

type grantXML struct {
	Grantee struct {
		Type  string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
		ID    string `xml:"ID"`
		URI   string `xml:"URI"`
		Email string `xml:"EmailAddress"`
	} `xml:"Grantee"`
	Permission string `xml:"Permission"`
}

// bodyACL reads an AccessControlPolicy for something that o owns.
func (q *request) bodyACL(o owner) (vfs.Grants, error) {
	var doc aclXML
	if err := q.readXML(configBounds, &doc); err != nil {
		if isCode(err, codeMalformedXML) {
			err = newError(codeMalformedACL)
		}
		return nil, err
	}
	if doc.Owner.ID != "" && !o.is(doc.Owner.ID) {
		return nil, newError(codeAccessDenied).withMessage("The owner of a resource cannot be changed by its ACL.")
	}
	if len(doc.Grants) > vfs.MaxGrants {
		return nil, tooManyGrants()
	}
	a := vfs.Grants{}
	for i := range doc.Grants {
		grant, err := q.xmlGrant(&doc.Grants[i], o)
		if err != nil {
			return nil, err
		}
		a = append(a, grant)
	}
	return complete(a), nil
}

func (q *request) xmlGrant(g *grantXML, o owner) (grant vfs.Grant, err error) {
	permission, ok := parsePermission(g.Permission)
	switch {
	case !ok:
		err = newError(codeMalformedACL)
	case g.Grantee.URI != "":
		grant, err = groupGrant(g.Grantee.URI)
	case g.Grantee.ID != "":
		grant, err = q.userGrant(g.Grantee.ID, o)
	case g.Grantee.Email != "":
		err = newError(codeUnresolvableGrant)
	default:
		err = newError(codeMalformedACL)
	}
	grant.Permission = permission
	return grant, err
}

// sendACL answers with an AccessControlPolicy.
func (q *request) sendACL(o owner, a vfs.Grants) {
	var x xmlWriter
	x.start("AccessControlPolicy", xmlNamespace)
	x.owner("Owner", o)
	x.open("AccessControlList")
	if !slices.ContainsFunc(a, func(g vfs.Grant) bool { return g.Grantee == vfs.GranteeOwner }) {
		x.userGrant(o, vfs.PermFullControl)
	}
	for i := range a {
		g := &a[i]
		switch {
		case g.Permission == 0: // the owner was granted nothing
			continue
		case g.Grantee == vfs.GranteeOwner:
			x.userGrant(o, g.Permission)
			continue
		case g.Grantee == vfs.GranteeUser:
			x.userGrant(q.granteeOf(g.User), g.Permission)
			continue
		}
		for _, group := range groupURIs {
			if group.grantee == g.Grantee {
				x.groupGrant(group.uri, g.Permission)
			}
		}
	}
	x.end("AccessControlList")
	x.end("AccessControlPolicy")
	x.send(q.w, q.r, http.StatusOK)
}

func (x *xmlWriter) userGrant(o owner, p vfs.Permission) {
	x.open("Grant")
	x.open(`Grantee xmlns:xsi="` + schemaInstance + `" xsi:type="CanonicalUser"`)
	x.str("ID", o.id)
	x.opt("DisplayName", o.name)
	x.endGrant(p)
}

func (x *xmlWriter) groupGrant(uri string, p vfs.Permission) {
	x.open("Grant")
	x.open(`Grantee xmlns:xsi="` + schemaInstance + `" xsi:type="Group"`)
	x.str("URI", uri)
	x.endGrant(p)
}

func (x *xmlWriter) endGrant(p vfs.Permission) {
	x.end("Grantee")
	x.str("Permission", permissionName(p))
	x.end("Grant")
}
