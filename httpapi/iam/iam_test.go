package iam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// door is a store with the users root, an administrator, and alice and bob.
type door struct {
	t      *testing.T
	fs     *vfs.FS
	server *Server
	url    string
}

func newDoor(t *testing.T) *door {
	t.Helper()
	fs, err := vfs.Open(t.Context(), mem.New(mem.Options{}), vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close(context.Background()) })
	for _, name := range []string{"root", "alice", "bob"} {
		u := users.User{Name: name, Admin: name == "root", Keys: []users.AccessKey{{ID: "KEY" + name, Secret: "secret-" + name}}}
		if _, err := fs.Users().Make(t.Context(), u, users.Options{FreeUID: true}); err != nil {
			t.Fatal(err)
		}
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := New(fs, Config{Next: next})
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	return &door{t, fs, server, s.URL}
}

// signed is a request as the SDKs sign it.
func (d *door) signed(who, secret, service, body string) *http.Request {
	d.t.Helper()
	return d.signedBy(aws.Credentials{AccessKeyID: "KEY" + who, SecretAccessKey: secret}, service, body)
}

func (d *door) signedBy(c aws.Credentials, service, body string) *http.Request {
	d.t.Helper()
	r, err := http.NewRequest(http.MethodPost, d.url+"/", strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(d.t.Context(), c, r, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now()); err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *door) send(r *http.Request) (int, string) {
	d.t.Helper()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// call runs an action; parameters are names and values in turn.
func (d *door) call(who, action string, parameters ...string) (int, string) {
	d.t.Helper()
	return d.callBy(aws.Credentials{AccessKeyID: "KEY" + who, SecretAccessKey: "secret-" + who}, action, parameters...)
}

// callBy is call with any credentials.
func (d *door) callBy(c aws.Credentials, action string, parameters ...string) (int, string) {
	d.t.Helper()
	service := "iam"
	if _, ok := operations["sts"][action]; ok || slices.Contains(refused["sts"], action) {
		service = "sts"
	}
	return d.send(d.signedBy(c, service, formOf(action, parameters...)))
}

func formOf(action string, parameters ...string) string {
	form := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	return form.Encode()
}

// ok runs an action that succeeds, and returns the text of an element of its answer.
func (d *door) ok(action, element string, parameters ...string) string {
	d.t.Helper()
	status, body := d.call("root", action, parameters...)
	if status != http.StatusOK {
		d.t.Fatalf("%s %q: %d %s", action, parameters, status, body)
	}
	return textOf(body, element)
}

// refused runs an action that fails with a code.
func (d *door) refused(who, code, action string, parameters ...string) {
	d.t.Helper()
	status, body := d.call(who, action, parameters...)
	if got := textOf(body, "Code"); status < 400 || got != code {
		d.t.Errorf("%s as %s %q: %d %s, want %s", action, who, parameters, status, body, code)
	}
}

func textOf(body, element string) string {
	_, rest, _ := strings.Cut(body, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	return text
}

func allow(action, resource string) string {
	return `{"Version":"2012-10-17","Statement":[{"Sid":"s","Effect":"Allow","Action":"` + action + `","Resource":"` + resource + `"}]}`
}

func TestUsersAndKeys(t *testing.T) {
	d := newDoor(t)
	if status, body := d.call("alice", "GetCallerIdentity"); status != 200 || !strings.HasSuffix(textOf(body, "Arn"), ":user/alice") || !strings.HasPrefix(textOf(body, "UserId"), "AIDA") ||
		!strings.Contains(body, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`) || textOf(body, "RequestId") == "" {
		t.Errorf("%d %s", status, body)
	}
	arn := d.ok("CreateUser", "Arn", "UserName", "carol", "Path", "/")
	if d.ok("GetUser", "Arn", "UserName", "carol") != arn || !strings.HasSuffix(d.ok("GetUser", "Arn"), ":user/root") {
		t.Error(arn)
	}
	d.refused("root", "EntityAlreadyExists", "CreateUser", "UserName", "carol")
	d.refused("root", "ValidationError", "CreateUser", "UserName", "a b")
	d.refused("root", "ValidationError", "CreateUser")
	d.refused("root", "NoSuchEntity", "GetUser", "UserName", "dave")
	key := d.ok("CreateAccessKey", "AccessKeyId", "UserName", "carol")
	if d.ok("ListAccessKeys", "AccessKeyId", "UserName", "carol") != key {
		t.Error(key)
	}
	if _, body := d.call("root", "ListAccessKeys", "UserName", "carol"); strings.Contains(body, "Secret") {
		t.Error(body)
	}
	d.refused("root", "DeleteConflict", "DeleteUser", "UserName", "carol")
	d.ok("UpdateAccessKey", "", "UserName", "carol", "AccessKeyId", key, "Status", "Active")
	d.refused("root", "NotImplemented", "UpdateAccessKey", "UserName", "carol", "AccessKeyId", key, "Status", "Inactive")
	d.ok("UpdateUser", "", "UserName", "carol", "NewUserName", "caroline")
	d.refused("root", "NoSuchEntity", "DeleteAccessKey", "UserName", "caroline", "AccessKeyId", "KEYalice")
	d.ok("DeleteAccessKey", "", "UserName", "caroline", "AccessKeyId", key)
	d.ok("DeleteUser", "", "UserName", "caroline")

	// Pages.
	var names []string
	for marker := ""; ; {
		p := []string{"MaxItems", "2"}
		if marker != "" {
			p = append(p, "Marker", marker)
		}
		_, body := d.call("root", "ListUsers", p...)
		for _, part := range strings.Split(body, "<UserName>")[1:] {
			name, _, _ := strings.Cut(part, "<")
			names = append(names, name)
		}
		if marker = textOf(body, "Marker"); textOf(body, "IsTruncated") == "false" {
			break
		}
	}
	if !slices.Equal(names, []string{"alice", "bob", "root"}) {
		t.Error(names)
	}
	for _, p := range [][]string{{"MaxItems", "0"}, {"MaxItems", "1001"}, {"MaxItems", "x"}, {"Marker", "!"}} {
		d.refused("root", "ValidationError", "ListUsers", p...)
	}
}

// TestSimulationPages: the pages of a simulation have each answer once, in the order of
// the request, and what is asked twice is answered twice.
func TestSimulationPages(t *testing.T) {
	d := newDoor(t)
	numbered := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("arn:aws:s3:::b/r%03d", i))
		}
		return list
	}
	put, get := "s3:PutObject", "s3:GetObject"
	for name, c := range map[string]struct {
		actions, resources []string
		size               string
	}{
		"100 resources":      {[]string{put, get}, numbered(100), ""},
		"60 resources":       {[]string{put, get}, numbered(60), ""},
		"repeated actions":   {[]string{put, put, put}, numbered(50), "7"},
		"repeated resources": {[]string{get, put}, append(numbered(3), numbered(3)...), "1"},
		"one page":           {[]string{put, get}, numbered(100), "1000"},
	} {
		p := []string{"PolicySourceArn", "arn:aws:iam:::user/bob"}
		for i, a := range c.actions {
			p = append(p, fmt.Sprintf("ActionNames.member.%d", i+1), a)
		}
		for i, r := range c.resources {
			p = append(p, fmt.Sprintf("ResourceArns.member.%d", i+1), r)
		}
		if c.size != "" {
			p = append(p, "MaxItems", c.size)
		}
		var asked, got []string
		for _, a := range c.actions {
			for _, r := range c.resources {
				asked = append(asked, a+" "+r)
			}
		}
		for marker := []string{}; len(got) <= len(asked); {
			status, body := d.call("root", "SimulatePrincipalPolicy", append(marker, p...)...)
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", name, status, body)
			}
			for _, part := range strings.Split(body, "<EvalActionName>")[1:] {
				action, rest, _ := strings.Cut(part, "<")
				got = append(got, action+" "+textOf(rest, "EvalResourceName"))
			}
			if textOf(body, "IsTruncated") == "false" {
				break
			}
			marker = []string{"Marker", textOf(body, "Marker")}
		}
		if !slices.Equal(got, asked) {
			t.Errorf("%s: %d answers to %d questions", name, len(got), len(asked))
		}
	}
	// More than is read is refused, not left out.
	for _, list := range []string{"ActionNames.member.%d", "ResourceArns.member.%d", "ContextEntries.member.%d.ContextKeyName", "ContextEntries.member.1.ContextKeyValues.member.%d"} {
		p := []string{"PolicySourceArn", "arn:aws:iam:::user/bob", "ActionNames.member.1", get, "ContextEntries.member.1.ContextKeyName", "k"}
		for i := range maxSimulated + 1 {
			p = append(p, fmt.Sprintf(list, i+1), "x")
		}
		d.refused("root", "ValidationError", "SimulatePrincipalPolicy", p...)
	}
}

func TestGroupsAndPolicies(t *testing.T) {
	d := newDoor(t)
	d.ok("CreateGroup", "Arn", "GroupName", "staff", "Path", "/x/")
	d.refused("root", "EntityAlreadyExists", "CreateGroup", "GroupName", "STAFF")
	d.ok("AddUserToGroup", "", "GroupName", "staff", "UserName", "bob")
	d.refused("root", "NoSuchEntity", "AddUserToGroup", "GroupName", "staff", "UserName", "nobody")
	if d.ok("GetGroup", "UserName", "GroupName", "staff") != "bob" || d.ok("ListGroupsForUser", "GroupName", "UserName", "bob") != "staff" || d.ok("ListGroups", "GroupName", "PathPrefix", "/x/") != "staff" {
		t.Error("not in the group")
	}
	text := allow("s3:GetObject", "arn:aws:s3:::b/*")
	d.ok("PutGroupPolicy", "", "GroupName", "staff", "PolicyName", "p", "PolicyDocument", text)
	if got, err := url.PathUnescape(d.ok("GetGroupPolicy", "PolicyDocument", "GroupName", "staff", "PolicyName", "p")); err != nil || got != text {
		t.Error(got, err)
	}
	d.ok("PutUserPolicy", "", "UserName", "bob", "PolicyName", "p", "PolicyDocument", text)
	if got := d.ok("ListUserPolicies", "member", "UserName", "bob"); got != "p" {
		t.Error(got)
	}
	d.refused("root", "MalformedPolicyDocument", "PutUserPolicy", "UserName", "bob", "PolicyName", "p", "PolicyDocument", "{")
	d.refused("root", "LimitExceeded", "PutUserPolicy", "UserName", "bob", "PolicyName", "q", "PolicyDocument", allow("s3:GetObject", "arn:aws:s3:::"+strings.Repeat("b", 2000)))
	d.refused("root", "NoSuchEntity", "GetUserPolicy", "UserName", "bob", "PolicyName", "q")

	arn := d.ok("CreatePolicy", "Arn", "PolicyName", "readers", "PolicyDocument", text, "Description", "d & e")
	d.refused("root", "EntityAlreadyExists", "CreatePolicy", "PolicyName", "readers", "PolicyDocument", text)
	d.ok("AttachUserPolicy", "", "UserName", "bob", "PolicyArn", arn)
	d.ok("AttachGroupPolicy", "", "GroupName", "staff", "PolicyArn", arn)
	if n := d.ok("GetPolicy", "AttachmentCount", "PolicyArn", arn); n != "2" {
		t.Error(n)
	}
	if got := d.ok("ListAttachedUserPolicies", "PolicyArn", "UserName", "bob"); got != arn {
		t.Error(got)
	}
	d.refused("root", "DeleteConflict", "DeletePolicy", "PolicyArn", arn)
	for range 4 {
		d.ok("CreatePolicyVersion", "VersionId", "PolicyArn", arn, "PolicyDocument", text, "SetAsDefault", "true")
	}
	d.refused("root", "LimitExceeded", "CreatePolicyVersion", "PolicyArn", arn, "PolicyDocument", text)
	d.refused("root", "DeleteConflict", "DeletePolicyVersion", "PolicyArn", arn, "VersionId", "v5")
	d.ok("SetDefaultPolicyVersion", "", "PolicyArn", arn, "VersionId", "v1")
	for _, v := range []string{"v2", "v3", "v4", "v5"} {
		d.ok("DeletePolicyVersion", "", "PolicyArn", arn, "VersionId", v)
	}
	if got, err := url.PathUnescape(d.ok("GetPolicyVersion", "Document", "PolicyArn", arn, "VersionId", "v1")); err != nil || got != text {
		t.Error(got, err)
	}
	d.ok("PutUserPermissionsBoundary", "", "UserName", "bob", "PermissionsBoundary", arn)
	if d.ok("GetUser", "PermissionsBoundaryArn", "UserName", "bob") != arn {
		t.Error("no boundary")
	}
	if _, body := d.call("root", "ListEntitiesForPolicy", "PolicyArn", arn); strings.Count(body, "<UserName>bob<") != 2 || !strings.Contains(body, "<GroupName>staff<") || !strings.Contains(body, "<PolicyRoles>") {
		t.Error(body)
	}
	d.ok("DeleteUserPermissionsBoundary", "", "UserName", "bob")
	d.refused("root", "NoSuchEntity", "DeleteUserPermissionsBoundary", "UserName", "bob")
	d.refused("root", "DeleteConflict", "DeleteGroup", "GroupName", "staff")
	d.ok("DetachUserPolicy", "", "UserName", "bob", "PolicyArn", arn)
	d.ok("DetachGroupPolicy", "", "GroupName", "staff", "PolicyArn", arn)
	d.ok("DeletePolicy", "", "PolicyArn", arn)
	d.refused("root", "ValidationError", "GetPolicy", "PolicyArn", "readers")
	d.refused("root", "InvalidAction", "CreateCloud")
}

// TestDocumentsThatHurt: what is huge, deep, cut or says something twice is refused
// wherever a document is taken, and what stood there stays.
func TestDocumentsThatHurt(t *testing.T) {
	d := newDoor(t)
	text := allow("s3:GetObject", "arn:aws:s3:::b/*")
	d.ok("PutUserPolicy", "", "UserName", "bob", "PolicyName", "p", "PolicyDocument", text)
	d.ok("CreateGroup", "", "GroupName", "g")
	d.ok("CreateRole", "", "RoleName", "r", "AssumeRolePolicyDocument", trust("AWS", "*", "sts:AssumeRole", ""))
	arn := d.ok("CreatePolicy", "Arn", "PolicyName", "m", "PolicyDocument", text)
	for what, doc := range map[string]string{
		"deep":  `{"Statement":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`,
		"cut":   text[:len(text)-1],
		"twice": `{"Statement":[],"Statement":[]}`,
		"huge":  `{"Statement":[` + strings.Repeat(" ", 100<<10) + `]}`,
	} {
		for _, call := range [][]string{
			{"PutUserPolicy", "UserName", "bob", "PolicyName", "p", "PolicyDocument", doc}, {"PutGroupPolicy", "GroupName", "g", "PolicyName", "p", "PolicyDocument", doc},
			{"PutRolePolicy", "RoleName", "r", "PolicyName", "p", "PolicyDocument", doc}, {"CreatePolicy", "PolicyName", "n", "PolicyDocument", doc},
			{"CreatePolicyVersion", "PolicyArn", arn, "PolicyDocument", doc}, {"CreateRole", "RoleName", "s", "AssumeRolePolicyDocument", doc},
			{"UpdateAssumeRolePolicy", "RoleName", "r", "PolicyDocument", doc},
			{"AssumeRole", "RoleArn", iam.RoleARN("/", "r"), "RoleSessionName", "sess", "Policy", doc}, {"GetFederationToken", "Name", "fed", "Policy", doc},
		} {
			status, body := d.call("root", call[0], call[1:]...)
			if code := textOf(body, "Code"); status/100 != 4 || !slices.Contains([]string{"MalformedPolicyDocument", "LimitExceeded", "ValidationError"}, code) {
				t.Errorf("%s: %s: %d %.300s", call[0], what, status, body)
			}
		}
	}
	if got, err := url.PathUnescape(d.ok("GetUserPolicy", "PolicyDocument", "UserName", "bob", "PolicyName", "p")); err != nil || got != text {
		t.Error(got, err)
	}
	for action, name := range map[string][]string{"ListGroupPolicies": {"GroupName", "g"}, "ListRolePolicies": {"RoleName", "r"}} {
		if got := d.ok(action, "member", name...); got != "" {
			t.Errorf("%s: %s", action, got)
		}
	}
	d.refused("root", "NoSuchEntity", "GetRole", "RoleName", "s")
	d.refused("root", "NoSuchEntity", "GetPolicyVersion", "PolicyArn", arn, "VersionId", "v2")
}

// TestOthersMayNothing: nobody without a policy may do anything but ask who he is, and
// a policy that allows everything makes no administrator.
func TestOthersMayNothing(t *testing.T) {
	d := newDoor(t)
	text := allow("s3:*", "*")
	d.ok("CreateGroup", "", "GroupName", "g")
	d.ok("CreatePolicy", "", "PolicyName", "m", "PolicyDocument", text)
	d.ok("PutGroupPolicy", "", "GroupName", "g", "PolicyName", "p", "PolicyDocument", text)
	d.ok("PutUserPolicy", "", "UserName", "bob", "PolicyName", "p", "PolicyDocument", text)
	all := []string{"UserName", "bob", "GroupName", "g", "PolicyName", "p", "PolicyDocument", text, "PolicyArn", "arn:aws:iam::000000000000:policy/m",
		"PermissionsBoundary", "arn:aws:iam::000000000000:policy/m", "VersionId", "v1", "AccessKeyId", "KEYbob", "Status", "Active", "NewUserName", "x", "NewGroupName", "x",
		"RoleName", "r", "AssumeRolePolicyDocument", trust("AWS", "*", "sts:AssumeRole", ""), "RoleArn", iam.RoleARN("/", "r"), "RoleSessionName", "sess",
		"OpenIDConnectProviderArn", iam.ProviderARN("id.example"), "Url", "https://id.example", "ClientID", "x",
		"PolicySourceArn", "arn:aws:iam:::user/root", "ActionNames.member.1", "s3:GetObject"}
	d.ok("CreateRole", "", "RoleName", "r", "AssumeRolePolicyDocument", trust("AWS", accountRoot, "sts:AssumeRole", ""))
	d.ok("CreateOpenIDConnectProvider", "", "Url", "https://id.example")
	for _, who := range []string{"alice", "bob"} {
		for _, action := range Operations() {
			p := slices.Clone(all)
			switch action {
			case "GetCallerIdentity", "GetSessionToken", "GetFederationToken", "AssumeRoleWithWebIdentity":
				continue
			case "UpdateAssumeRolePolicy":
				p[7] = trust("AWS", "*", "sts:AssumeRole", "")
			case "CreateUser":
				p[1] = "new"
				p = p[:2]
			}
			d.refused(who, "AccessDenied", action, p...)
		}
	}
	d.ok("PutUserPolicy", "", "UserName", "bob", "PolicyName", "p", "PolicyDocument", allow("*", "*"))
	d.refused("bob", "AccessDenied", "CreateAccessKey", "UserName", "root")
	d.refused("bob", "AccessDenied", "UpdateUser", "UserName", "root", "NewUserName", "x")
	d.refused("bob", "AccessDenied", "DeleteUser", "UserName", "root")
	if status, body := d.call("bob", "CreateUser", "UserName", "new"); status != 200 {
		t.Error(body)
	}
}

// TestRenameTakesBothNames: who may rename some names gives no name that is not among
// them, with which would come what policies give to ${aws:username}.
func TestRenameTakesBothNames(t *testing.T) {
	d := newDoor(t)
	for _, name := range []string{"dev-1", "dev-2"} {
		d.ok("CreateUser", "", "UserName", name)
		d.ok("CreateGroup", "", "GroupName", name, "Path", "/x/")
	}
	may := func(resources ...string) {
		t.Helper()
		text := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:Update*","Resource":["` + strings.Join(resources, `","`) + `"]}]}`
		d.ok("PutUserPolicy", "", "UserName", "alice", "PolicyName", "p", "PolicyDocument", text)
	}
	renamed := func(action string, parameters ...string) {
		t.Helper()
		if status, body := d.call("alice", action, parameters...); status != 200 {
			t.Errorf("%s %q: %d %s", action, parameters, status, body)
		}
	}
	may("arn:aws:iam::*:user/dev-*", "arn:aws:iam::*:group/x/dev-*")
	d.refused("alice", "AccessDenied", "UpdateUser", "UserName", "dev-1", "NewUserName", "boss")
	d.refused("alice", "AccessDenied", "UpdateUser", "UserName", "dev-1", "NewUserName", "bob")
	d.refused("alice", "AccessDenied", "UpdateUser", "UserName", "bob", "NewUserName", "dev-3")
	d.refused("alice", "EntityAlreadyExists", "UpdateUser", "UserName", "dev-1", "NewUserName", "dev-2")
	d.refused("alice", "NoSuchEntity", "UpdateUser", "UserName", "dev-9", "NewUserName", "dev-3")
	renamed("UpdateUser", "UserName", "dev-1", "NewUserName", "dev-3")
	d.refused("alice", "AccessDenied", "UpdateGroup", "GroupName", "dev-1", "NewGroupName", "boss")
	d.refused("alice", "AccessDenied", "UpdateGroup", "GroupName", "dev-1", "NewPath", "/y/")
	d.refused("alice", "AccessDenied", "UpdateGroup", "GroupName", "dev-1", "NewGroupName", "dev-3", "NewPath", "/y/")
	d.refused("alice", "EntityAlreadyExists", "UpdateGroup", "GroupName", "dev-1", "NewGroupName", "dev-2")
	renamed("UpdateGroup", "GroupName", "dev-1", "NewGroupName", "dev-3")

	// The account of a user stays, and a policy may name it.
	account := strings.TrimSuffix(d.ok("GetUser", "Arn", "UserName", "dev-3"), "dev-3")
	may(account+"dev-3", account+"boss", "arn:aws:iam::*:group/x/dev-3", "arn:aws:iam::*:group/y/boss")
	d.refused("alice", "AccessDenied", "UpdateGroup", "GroupName", "dev-3", "NewGroupName", "boss")
	renamed("UpdateUser", "UserName", "dev-3", "NewUserName", "boss")
	renamed("UpdateGroup", "GroupName", "dev-3", "NewGroupName", "boss", "NewPath", "/y/")
}

// TestNobodyLearnsNames: to who may not ask, what is there is refused in the words of what
// is not; who may is told.
func TestNobodyLearnsNames(t *testing.T) {
	d := newDoor(t)
	text, trusted := allow("s3:GetObject", "*"), trust("AWS", accountRoot, "sts:AssumeRole", "")
	// At a path, and in other letters than it is asked for.
	d.ok("CreateGroup", "", "GroupName", "Here", "Path", "/secret/")
	d.ok("CreateRole", "", "RoleName", "Here", "Path", "/secret/", "AssumeRolePolicyDocument", trusted)
	d.ok("CreatePolicy", "", "PolicyName", "here", "PolicyDocument", text)
	d.ok("CreateUser", "", "UserName", "here")
	d.ok("CreateOpenIDConnectProvider", "", "Url", "https://here.example")
	d.ok("CreateUser", "", "UserName", "admin")
	if err := d.fs.Users().Update(t.Context(), "admin", func(u *users.User) error { u.Admin = true; return nil }); err != nil {
		t.Fatal(err)
	}
	all := func(name string) []string {
		return []string{"UserName", name, "GroupName", name, "RoleName", name, "PolicyName", "p", "PolicyDocument", text, "PolicyArn", iam.PolicyARN("/", name),
			"VersionId", "v1", "AccessKeyId", "KEYbob", "Status", "Active", "NewUserName", "x", "NewGroupName", "x", "AssumeRolePolicyDocument", trusted,
			"PermissionsBoundary", iam.PolicyARN("/", name), "OpenIDConnectProviderArn", iam.ProviderARN(name + ".example"), "Url", "https://id.example", "ClientID", "x",
			"RoleArn", iam.RoleARN("/", name), "RoleSessionName", "sess", "PolicySourceArn", "arn:aws:iam:::user/" + name, "ActionNames.member.1", "s3:GetObject"}
	}
	answer := func(action, name string) string {
		p := all(name)
		switch action {
		case "CreateUser":
			p = p[:2]
		case "CreateRole":
			p[5] = "new"
		case "UpdateAssumeRolePolicy":
			p[9] = trusted
		}
		status, body := d.call("alice", action, p...)
		return strings.ReplaceAll(textOf(body, "Code")+" "+http.StatusText(status)+" "+textOf(body, "Message"), name, "NAME")
	}
	for _, action := range Operations() {
		switch action {
		case "GetCallerIdentity", "GetSessionToken", "GetFederationToken", "AssumeRoleWithWebIdentity":
			continue
		}
		absent := answer(action, "none")
		if !strings.HasPrefix(absent, "AccessDenied Forbidden ") {
			t.Errorf("%s of what is not there: %s", action, absent)
		}
		for _, name := range []string{"here", "admin"} {
			if present := answer(action, name); present != absent {
				t.Errorf("%s of what is there: %s\nof what is not: %s", action, present, absent)
			}
		}
	}

	d.ok("PutUserPolicy", "", "UserName", "alice", "PolicyName", "p", "PolicyDocument", allow("iam:*", "*"))
	for _, action := range []string{"GetUser", "GetGroup", "GetRole", "GetPolicy", "AttachRolePolicy", "PutUserPermissionsBoundary", "CreateAccessKey", "AddUserToGroup", "SimulatePrincipalPolicy"} {
		d.refused("alice", "NoSuchEntity", action, all("none")...)
	}
	missing := iam.PolicyARN("/", "none")
	d.refused("alice", "NoSuchEntity", "CreateRole", "RoleName", "new", "AssumeRolePolicyDocument", trusted, "PermissionsBoundary", missing)
	d.refused("alice", "NoSuchEntity", "AttachUserPolicy", "UserName", "here", "PolicyArn", missing)
	d.refused("alice", "NoSuchEntity", "AddUserToGroup", "UserName", "none", "GroupName", "here")
}

// TestBadRequests: nothing is done for a request that nobody signed as it is.
func TestBadRequests(t *testing.T) {
	d := newDoor(t)
	body := "Action=CreateUser&UserName=mallory"
	for name, c := range map[string]struct {
		code string
		make func() *http.Request
	}{
		"secret": {"SignatureDoesNotMatch", func() *http.Request { return d.signed("root", "wrong", "iam", body) }},
		"key":    {"InvalidClientTokenId", func() *http.Request { return d.signed("mallory", "x", "iam", body) }},
		"body": {"SignatureDoesNotMatch", func() *http.Request {
			r := d.signed("root", "secret-root", "iam", "Action=CreateUser&UserName=mallor1")
			r.Body = io.NopCloser(strings.NewReader(body))
			return r
		}},
		"service": {"InvalidAction", func() *http.Request { return d.signed("root", "secret-root", "sts", body) }},
		"type": {"InvalidInput", func() *http.Request {
			r := d.signed("root", "secret-root", "iam", body)
			r.Header.Set("Content-Type", "application/json")
			return r
		}},
		"unsigned token": {"SignatureDoesNotMatch", func() *http.Request {
			r := d.signed("root", "secret-root", "iam", body)
			r.Header.Set("X-Amz-Security-Token", "x")
			return r
		}},
		"large": {"RequestEntityTooLarge", func() *http.Request {
			return d.signed("root", "secret-root", "iam", body+"&x="+strings.Repeat("x", maxBody))
		}},
		"query": {"MalformedQueryString", func() *http.Request { return d.signed("root", "secret-root", "iam", "Action=%zz") }},
	} {
		status, answer := d.send(c.make())
		if textOf(answer, "Code") != c.code || status == 200 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	d.refused("root", "NoSuchEntity", "GetUser", "UserName", "mallory")
}

// TestOtherDoor: what is not signed for these services goes on.
func TestOtherDoor(t *testing.T) {
	d := newDoor(t)
	plain, _ := http.NewRequest(http.MethodPost, d.url+"/", strings.NewReader("Action=ListUsers"))
	get, _ := http.NewRequest(http.MethodGet, d.url+"/", nil)
	get.Header.Set("Authorization", d.signed("root", "secret-root", "iam", "").Header.Get("Authorization"))
	below := d.signed("root", "secret-root", "iam", "")
	below.URL.Path = "/bucket"
	form := func(query string) *http.Request {
		r, err := http.NewRequest(http.MethodPost, d.url+"/"+query, strings.NewReader("<Delete/>"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	if status, body := d.send(form("")); textOf(body, "Code") != "MissingAuthenticationToken" {
		t.Errorf("a form: %d %s", status, body)
	}
	// Of a bucket that the host names, by who signed the URL, and by nobody.
	presigned, anonymous := form("?delete&X-Amz-Algorithm=AWS4-HMAC-SHA256"), form("?delete")
	for _, r := range []*http.Request{plain, get, below, presigned, anonymous, d.signed("root", "secret-root", "s3", "")} {
		if status, _ := d.send(r); status != http.StatusTeapot {
			t.Errorf("%s %s: %d", r.Method, r.URL, status)
		}
	}
}

// TestOperationsDocument holds docs/iam-operations.md against the table.
func TestOperationsDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/iam-operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := ""
	for _, service := range []string{"iam", "sts"} {
		served := map[string]string{}
		for name := range operations[service] {
			served[name] = "yes"
			if but := partly[name]; but != "" {
				served[name] = "partly: " + but
			}
		}
		for _, name := range refused[service] {
			served[name] = "501"
		}
		for _, name := range slices.Sorted(maps.Keys(served)) {
			rows += "| " + service + " | " + name + " | " + served[name] + " |\n"
		}
	}
	if _, table, _ := strings.Cut(string(doc), "|---|---|---|\n"); table != rows {
		t.Errorf("the table should be\n%s", rows)
	}
}

// TestAWSCLI does with the aws command what makes a user that may only read.
func TestAWSCLI(t *testing.T) {
	if testing.Short() {
		t.Skip("client programs take their time")
	}
	d := newDoor(t)
	aws := func(args ...string) string {
		t.Helper()
		c := exec.Command("aws", append([]string{"--endpoint-url", d.url, "--output", "text"}, args...)...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=KEYroot", "AWS_SECRET_ACCESS_KEY=secret-root",
			"AWS_DEFAULT_REGION=eu-central-1", "AWS_EC2_METADATA_DISABLED=true"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("aws %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	if out := aws("sts", "get-caller-identity"); !strings.Contains(out, ":user/root") {
		t.Error(out)
	}
	text := allow("s3:GetObject", "arn:aws:s3:::b/p/*")
	aws("iam", "create-user", "--user-name", "reader")
	arn := strings.TrimSpace(aws("iam", "create-policy", "--policy-name", "readers", "--policy-document", text, "--query", "Policy.Arn"))
	aws("iam", "attach-user-policy", "--user-name", "reader", "--policy-arn", arn)
	if out := aws("iam", "create-access-key", "--user-name", "reader", "--query", "AccessKey.SecretAccessKey"); len(strings.TrimSpace(out)) < 40 {
		t.Error(out)
	}
	if out := aws("iam", "list-attached-user-policies", "--user-name", "reader"); !strings.Contains(out, arn) {
		t.Error(out)
	}
	if out := aws("iam", "get-policy-version", "--policy-arn", arn, "--version-id", "v1", "--output", "json"); !strings.Contains(out, `"s3:GetObject"`) {
		t.Error(out)
	}
	if out := aws("iam", "list-users", "--page-size", "1", "--query", "Users[].UserName"); strings.Join(strings.Fields(out), " ") != "alice bob reader root" {
		t.Error(out)
	}
}
