package format

import (
	"encoding/json"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// acl1 is an ACL of format 1: users by name, groups by URI.
type acl1 struct {
	Grants []struct {
		User       string `json:"user"`
		Group      string `json:"group"`
		Permission string `json:"permission"`
	} `json:"grants"`
}

var permissions1 = map[string]record.Permission{
	"READ": record.PermRead, "WRITE": record.PermWrite, "READ_ACP": record.PermReadACP, "WRITE_ACP": record.PermWriteACP, "FULL_CONTROL": record.PermFullControl,
}

var groups1 = map[string]record.Grantee{
	"http://acs.amazonaws.com/groups/global/AllUsers":           record.GranteeEverybody,
	"http://acs.amazonaws.com/groups/global/AuthenticatedUsers": record.GranteeAuthenticated,
}

// isFormat1 reports whether a record of one of record.ConvertedTables must change, and
// for an inode whose it is, if that counts for record.CounterUID.
func isFormat1(k, v []byte) (uid uint32, change bool, err error) {
	switch k[0] {
	case record.TabUserName:
		return 0, len(v) > 0 && v[0] == record.UserVersion1, nil
	case record.TabBucket:
		b, err := record.DecodeBucket(v)
		_, change = b[record.AclAttr1]
		return 0, change, err
	case record.TabUpload:
		u, err := record.DecodeUpload(k, v)
		if err == nil {
			_, change = u.Meta.Headers[record.AclHeader1]
		}
		return 0, change, err
	}
	n, err := record.InodeOfPair(k, v)
	if err != nil {
		return 0, false, err
	}
	if n.UID >= record.FirstUID && n.UID < record.EndUIDFloor && n.UID != record.NobodyUID {
		uid = n.UID
	}
	_, change = n.Object.Headers[record.AclHeader1]
	return uid, change, nil
}

// user gives a user an ID. Several could have one uid: they keep it, since it
// owns their files, and the first of them is who the uid stands for.
func (c *converter) user(t cluster.Txn, name string, v []byte) error {
	u, err := record.DecodeUser1(name, v)
	if err != nil {
		return err
	}
	u.ID = record.NewUserID()
	u.Founder = name == record.Founder1 && u.Admin
	for _, k := range u.Keys {
		if err := t.Set(record.AccessIDKey(k.ID), []byte(u.ID)); err != nil {
			return err
		}
	}
	first, err := t.Get(record.UIDKey(u.UID))
	if err != nil {
		return err
	}
	if first != nil {
		c.opts.Log.Warn("two users have one uid: each is the owner of what the other has; a user can have several access keys instead",
			"user", name, "uid", u.UID)
	} else if err := t.Set(record.UIDKey(u.UID), []byte(u.ID)); err != nil {
		return err
	}
	if err := t.Set(record.UserNameKey(name), []byte(u.ID)); err != nil {
		return err
	}
	return t.Set(record.UserKey(u.ID), u.Encode(c.opts.Keys))
}

// bucket returns nil for a record that is not needed any more.
func (c *converter) bucket(t cluster.Txn, v []byte) ([]byte, error) {
	b, err := record.DecodeBucket(v)
	if err != nil {
		return nil, err
	}
	g, err := c.grants(t, b[record.AclAttr1])
	if err != nil {
		return nil, err
	}
	delete(b, record.AclAttr1)
	if len(g) > 0 {
		b[record.GrantsAttr] = record.EncodeGrants(g)
	}
	if len(b) == 0 {
		return nil, nil
	}
	return b.Encode(), nil
}

func (c *converter) inode(t cluster.Txn, k, v []byte) ([]byte, error) {
	n, err := record.InodeOfPair(k, v)
	if err != nil {
		return nil, err
	}
	g, err := c.grants(t, []byte(n.Object.Headers[record.AclHeader1]))
	if err != nil {
		return nil, err
	}
	delete(n.Object.Headers, record.AclHeader1)
	n.SetGrants(g)
	return n.Encode(), nil
}

func (c *converter) upload(t cluster.Txn, k, v []byte) ([]byte, error) {
	u, err := record.DecodeUpload(k, v)
	if err != nil {
		return nil, err
	}
	if u.Meta.Grants, err = c.grants(t, []byte(u.Meta.Headers[record.AclHeader1])); err != nil {
		return nil, err
	}
	delete(u.Meta.Headers, record.AclHeader1)
	return u.Encode(), nil
}

// grants reads an ACL of format 1. What cannot be understood grants nothing.
func (c *converter) grants(r cluster.Reader, b []byte) (record.Grants, error) {
	var old acl1
	if len(b) > 0 && json.Unmarshal(b, &old) != nil {
		c.opts.Log.Warn("an ACL could not be read: it grants nothing now", "acl", string(b))
	}
	var out record.Grants
	for _, g := range old.Grants {
		grant := record.Grant{Grantee: groups1[g.Group], Permission: permissions1[g.Permission]}
		if g.User != "" {
			id, err := c.userNamed(r, g.User)
			if err != nil {
				return nil, err
			}
			grant.Grantee, grant.User = record.GranteeUser, id
		}
		if record.ValidateGrant(&grant) == nil && len(out) < record.MaxGrants {
			out = append(out, grant)
		}
	}
	return out, nil
}

// userNamed returns who has a name, "" if nobody.
func (c *converter) userNamed(r cluster.Reader, name string) (record.UserID, error) {
	id, known := c.names[name]
	if !known {
		b, err := r.Get(record.UserNameKey(name))
		if err != nil {
			return "", err
		}
		id = record.UserID(b)
		c.names[name] = id
	}
	return id, nil
}
