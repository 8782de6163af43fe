package iam

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// userXML is a user as the API shows one. All are at the path "/".
type userXML struct {
	Path       string
	UserName   string
	UserID     string `xml:"UserId"`
	Arn        string
	CreateDate string
	Boundary   *boundaryXML `xml:"PermissionsBoundary,omitempty"`
}

type boundaryXML struct {
	Type string `xml:"PermissionsBoundaryType"`
	Arn  string `xml:"PermissionsBoundaryArn"`
}

func showBoundary(m *iam.Managed) *boundaryXML {
	return &boundaryXML{"PermissionsBoundaryPolicy", iam.PolicyARN(m.Path, m.Name)}
}

type userResult struct{ User userXML }

func showUser(u *users.User) userXML {
	return userXML{Path: "/", UserName: u.Name, UserID: string(u.ID), Arn: users.ARN(u.UID, u.Name), CreateDate: timeOf(u.Created)}
}

// guarded is the context in which users are read or changed if the caller may do so.
func (q *request) guarded(action, user string) context.Context {
	return users.Guarded(q.ctx, q.fs.IAM().May("iam:"+action, user))
}

// entityError puts an error about the user of a name in the API's words.
func entityError(err error, name string) error {
	switch {
	case errors.Is(err, vfs.ErrNoSuchUser):
		return iam.NoUser(name)
	case errors.Is(err, vfs.ErrUserExists):
		return &iam.Error{Code: iam.EntityAlreadyExists, Message: "User with name " + name + " already exists."}
	}
	return err
}

// rootPath refuses other paths of users: they have none here.
func (q *request) rootPath(parameter string) error {
	if p := q.form.Get(parameter); p != "" && p != "/" {
		return newError(string(iam.InvalidInput), http.StatusBadRequest, "Users have the path / only.")
	}
	return nil
}

func createUser(q *request) (any, error) {
	name, err := q.param("UserName")
	if err == nil {
		err = iam.ValidUserName(name)
	}
	if err == nil {
		err = q.rootPath("Path")
	}
	if err != nil {
		return nil, err
	}
	if q.form.Get("PermissionsBoundary") != "" {
		// To make the user first would leave one without, if the second step fails.
		return nil, newError(string(iam.InvalidInput), http.StatusBadRequest, "Set the boundary by PutUserPermissionsBoundary.")
	}
	u, err := q.fs.Users().Make(q.guarded("CreateUser", name), users.User{Name: name}, users.Options{FreeUID: true})
	if err != nil {
		return nil, entityError(err, name)
	}
	return userResult{showUser(&u)}, nil
}

func getUser(q *request) (any, error) {
	name := q.userName()
	u, err := q.fs.Users().ByName(q.guarded("GetUser", name), name)
	if err != nil {
		return nil, entityError(err, name)
	}
	shown := showUser(&u)
	m, is, err := q.fs.IAM().Boundary(q.ctx, iam.Holder{Kind: iam.User, Name: name})
	if is {
		shown.Boundary = showBoundary(&m)
	}
	return userResult{shown}, err
}

func listUsers(q *request) (any, error) {
	list, err := q.fs.Users().List(q.guarded("ListUsers", "*"))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix("/", q.form.Get("PathPrefix")) {
		list = nil
	}
	list, more, err := page(q, list, func(u *users.User) string { return u.Name })
	return struct {
		Users members[userXML]
		paged
	}{membersOf(list, showUser), more}, err
}

func updateUser(q *request) (any, error) {
	name, err := q.param("UserName")
	if err == nil {
		err = q.rootPath("NewPath")
	}
	to := q.form.Get("NewUserName")
	if err != nil || to == "" || to == name {
		return nil, err
	}
	if err := iam.ValidUserName(to); err != nil {
		return nil, err
	}
	_, err = q.fs.Users().Rename(users.Guarded(q.ctx, q.fs.IAM().MayRename(name, to)), name, to)
	if errors.Is(err, vfs.ErrUserExists) {
		return nil, entityError(err, to)
	}
	return nil, entityError(err, name)
}

func deleteUser(q *request) (any, error) {
	name, err := q.param("UserName")
	if err != nil {
		return nil, err
	}
	return nil, entityError(q.fs.Users().Remove(users.Guarded(q.ctx, q.fs.IAM().MayDelete(name)), name), name)
}
