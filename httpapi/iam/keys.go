package iam

import (
	"net/http"
	"slices"
	"strings"

	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// keyXML is an access key as the API shows one; the secret only when it is made.
type keyXML struct {
	UserName    string
	AccessKeyID string `xml:"AccessKeyId"`
	Status      string
	Secret      string `xml:"SecretAccessKey,omitempty"`
	CreateDate  string
}

func createAccessKey(q *request) (any, error) {
	name, key := q.userName(), users.NewKey(q.cfg.Now())
	err := q.fs.Users().Update(q.guarded("CreateAccessKey", name), name, func(u *users.User) error {
		if len(u.Keys) >= users.MaxKeys {
			return &iam.Error{Code: iam.LimitExceeded, Message: "Cannot exceed quota for AccessKeysPerUser"}
		}
		u.Keys = append(u.Keys, key)
		return nil
	})
	if err != nil {
		return nil, entityError(err, name)
	}
	return struct{ AccessKey keyXML }{keyXML{name, key.ID, "Active", key.Secret, timeOf(key.Created)}}, nil
}

func listAccessKeys(q *request) (any, error) {
	name := q.userName()
	u, err := q.fs.Users().ByName(q.guarded("ListAccessKeys", name), name)
	if err != nil {
		return nil, entityError(err, name)
	}
	keys := slices.Clone(u.Keys)
	slices.SortFunc(keys, func(a, b users.AccessKey) int { return strings.Compare(a.ID, b.ID) })
	keys, more, err := page(q, keys, func(k *users.AccessKey) string { return k.ID })
	return struct {
		UserName string
		Keys     members[keyXML] `xml:"AccessKeyMetadata"`
		paged
	}{name, membersOf(keys, func(k *users.AccessKey) keyXML {
		return keyXML{UserName: name, AccessKeyID: k.ID, Status: "Active", CreateDate: timeOf(k.Created)}
	}), more}, err
}

// updateAccessKey takes that a key is active, which all are.
func updateAccessKey(q *request) (any, error) {
	p, err := q.params("AccessKeyId", "Status")
	if err != nil {
		return nil, err
	}
	if p[1] != "Active" {
		return nil, newError("NotImplemented", http.StatusNotImplemented, "Access keys cannot be inactive here: delete the key.")
	}
	return nil, q.changeKey("UpdateAccessKey", p[0], func(*users.User, int) {})
}

func deleteAccessKey(q *request) (any, error) {
	id, err := q.param("AccessKeyId")
	if err != nil {
		return nil, err
	}
	return nil, q.changeKey("DeleteAccessKey", id, func(u *users.User, i int) { u.Keys = slices.Delete(u.Keys, i, i+1) })
}

func (q *request) changeKey(action, id string, change func(u *users.User, i int)) error {
	name := q.userName()
	return entityError(q.fs.Users().Update(q.guarded(action, name), name, func(u *users.User) error {
		i := slices.IndexFunc(u.Keys, func(k users.AccessKey) bool { return k.ID == id })
		if i < 0 {
			return &iam.Error{Code: iam.NoSuchEntity, Message: "The Access Key with id " + id + " cannot be found."}
		}
		change(u, i)
		return nil
	}), name)
}
