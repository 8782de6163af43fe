package vfs

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"ogw/cluster"
)

// What stores of format 1 hold, for convert.go alone.
const (
	userVersion1 = 1
	// aclAttr1 is the bucket attribute, and aclHeader1 the header of objects
	// and uploads, that held an ACL as JSON.
	aclAttr1   = "s3.acl"
	aclHeader1 = "X-Ogw-Acl"
	// founder1 is the name that the first user had.
	founder1 = "root"
)

// acl1 is an ACL of format 1: users by name, groups by URI.
type acl1 struct {
	Grants []struct {
		User       string `json:"user"`
		Group      string `json:"group"`
		Permission string `json:"permission"`
	} `json:"grants"`
}

var permissions1 = map[string]Permission{
	"READ": PermRead, "WRITE": PermWrite, "READ_ACP": PermReadACP, "WRITE_ACP": PermWriteACP, "FULL_CONTROL": PermFullControl,
}

var groups1 = map[string]Grantee{
	"http://acs.amazonaws.com/groups/global/AllUsers":           GranteeEverybody,
	"http://acs.amazonaws.com/groups/global/AuthenticatedUsers": GranteeAuthenticated,
}

// isFormat1 reports whether a record of one of convertTables must change, and
// for an inode whose it is, if that counts for the floor of freeUID.
func isFormat1(k, v []byte) (uid uint32, change bool, err error) {
	switch k[0] {
	case tabUserName:
		return 0, len(v) > 0 && v[0] == userVersion1, nil
	case tabBucket:
		b, err := decodeBucket(v)
		_, change = b[aclAttr1]
		return 0, change, err
	case tabUpload:
		u, err := decodeUpload(k, v)
		if err == nil {
			_, change = u.meta.Headers[aclHeader1]
		}
		return 0, change, err
	}
	n, err := inodeOf(k, v)
	if err != nil {
		return 0, false, err
	}
	if n.uid >= FirstUID && n.uid < endFloor && n.uid != NobodyUID {
		uid = n.uid
	}
	_, change = n.object.headers[aclHeader1]
	return uid, change, nil
}

func inodeOf(k, v []byte) (*inode, error) {
	if len(k) != key1Bytes {
		return nil, fmt.Errorf("%w: inode key %x", ErrCorrupt, k)
	}
	return decodeInode(Ino(binary.BigEndian.Uint64(k[1:])), slices.Clone(v))
}

// decodeUser1 reads a user of format 1: version byte, uvarints uid and gid, a
// byte for admin, the number of keys, and for each its ID, its secret and its
// creation. The name is in the key.
func decodeUser1(name string, b []byte) (User, error) {
	d := decoder{b: b, what: "user"}
	if v := d.byte(); v != userVersion1 {
		return User{}, fmt.Errorf("%w: user %q has format %d", ErrCorrupt, name, v)
	}
	u := User{Name: name, UID: uint32(d.uint()), GID: uint32(d.uint()), Admin: d.byte() != 0}
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		u.Keys = append(u.Keys, AccessKey{d.str(), d.str(), d.int()})
	}
	return u, d.end()
}

// user gives a user an ID. Several could have one uid: they keep it, since it
// owns their files, and the first of them is who the uid stands for.
func (c *converter) user(t cluster.Txn, name string, v []byte) error {
	u, err := decodeUser1(name, v)
	if err != nil {
		return err
	}
	u.ID = newUserID()
	u.Founder = name == founder1 && u.Admin
	for _, k := range u.Keys {
		if err := t.Set(accessKey(k.ID), []byte(u.ID)); err != nil {
			return err
		}
	}
	first, err := t.Get(uidKey(u.UID))
	if err != nil {
		return err
	}
	if first != nil {
		c.fs.log.Warn("two users have one uid: each is the owner of what the other has; a user can have several access keys instead",
			"user", name, "uid", u.UID)
	} else if err := t.Set(uidKey(u.UID), []byte(u.ID)); err != nil {
		return err
	}
	if err := t.Set(userNameKey(name), []byte(u.ID)); err != nil {
		return err
	}
	return t.Set(userKey(u.ID), u.encode(c.fs.cfg.Keys))
}

// bucket returns nil for a record that is not needed any more.
func (c *converter) bucket(t cluster.Txn, v []byte) ([]byte, error) {
	b, err := decodeBucket(v)
	if err != nil {
		return nil, err
	}
	g, err := c.grants(t, b[aclAttr1])
	if err != nil {
		return nil, err
	}
	delete(b, aclAttr1)
	if len(g) > 0 {
		b[attrGrants] = g.encode()
	}
	if len(b) == 0 {
		return nil, nil
	}
	return b.encode(), nil
}

func (c *converter) inode(t cluster.Txn, k, v []byte) ([]byte, error) {
	n, err := inodeOf(k, v)
	if err != nil {
		return nil, err
	}
	g, err := c.grants(t, []byte(n.object.headers[aclHeader1]))
	if err != nil {
		return nil, err
	}
	delete(n.object.headers, aclHeader1)
	n.setGrants(g)
	return n.encode(), nil
}

func (c *converter) upload(t cluster.Txn, k, v []byte) ([]byte, error) {
	u, err := decodeUpload(k, v)
	if err != nil {
		return nil, err
	}
	if u.meta.Grants, err = c.grants(t, []byte(u.meta.Headers[aclHeader1])); err != nil {
		return nil, err
	}
	delete(u.meta.Headers, aclHeader1)
	return u.encode(), nil
}

// grants reads an ACL of format 1. What cannot be understood grants nothing.
func (c *converter) grants(r cluster.Reader, b []byte) (Grants, error) {
	var old acl1
	if len(b) > 0 && json.Unmarshal(b, &old) != nil {
		c.fs.log.Warn("an ACL could not be read: it grants nothing now", "acl", string(b))
	}
	var out Grants
	for _, g := range old.Grants {
		grant := Grant{Grantee: groups1[g.Group], Permission: permissions1[g.Permission]}
		if g.User != "" {
			id, err := c.userNamed(r, g.User)
			if err != nil {
				return nil, err
			}
			grant.Grantee, grant.User = GranteeUser, id
		}
		if grant.validate() == nil && len(out) < MaxGrants {
			out = append(out, grant)
		}
	}
	return out, nil
}

// userNamed returns who has a name, "" if nobody.
func (c *converter) userNamed(r cluster.Reader, name string) (UserID, error) {
	id, known := c.names[name]
	if !known {
		b, err := r.Get(userNameKey(name))
		if err != nil {
			return "", err
		}
		id = UserID(b)
		c.names[name] = id
	}
	return id, nil
}
