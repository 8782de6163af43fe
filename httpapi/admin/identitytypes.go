package admin

import (
	"encoding/json"
	"time"
)

// Role is an identity that others assume for a time.
type Role struct {
	ID         string          `json:"id"` // never given twice
	Name       string          `json:"name"`
	ARN        string          `json:"arn"`
	UID        uint32          `json:"uid"`         // owns what its sessions make
	MaxSession int             `json:"max_session"` // seconds
	Trust      json.RawMessage `json:"trust,omitempty"`
	Created    time.Time       `json:"created"`
}

// AddRole asks for a new role, or for another trust policy of one.
type AddRole struct {
	Name       string          `json:"name,omitempty"`
	Trust      json.RawMessage `json:"trust"`
	MaxSession int             `json:"max_session,omitempty"` // seconds; 0 is an hour
}

// Group is a group of users.
type Group struct {
	ID    string   `json:"id"` // never given twice
	Name  string   `json:"name"`
	ARN   string   `json:"arn"`
	Users []string `json:"users"`
}

// AddGroup asks for a new group.
type AddGroup struct {
	Name string `json:"name"`
}

// Policy is a managed policy, with the document of the version in force.
type Policy struct {
	ID       string          `json:"id"` // never given twice
	Name     string          `json:"name"`
	ARN      string          `json:"arn"`
	Version  int             `json:"version"`
	Attached int             `json:"attached"` // to so many users, groups and roles
	Bounds   int             `json:"bounds"`   // so many
	Document json.RawMessage `json:"document,omitempty"`
}

// PutPolicy asks for a policy, or for a new version of one.
type PutPolicy struct {
	Document json.RawMessage `json:"document"`
}

// Attachment is a policy and who holds it.
type Attachment struct {
	Policy string `json:"policy"`
	Kind   string `json:"kind"` // "User", "Group" or "Role"
	Name   string `json:"name"`
}

// Simulate asks who may do something. Who are users by name or as "user/NAME", roles as
// "role/NAME", ARNs, and "anonymous"; none stands for all of them. A resource of S3 may be BUCKET or BUCKET/KEY.
type Simulate struct {
	Who      []string            `json:"who,omitempty"`
	Action   string              `json:"action"` // "s3:" may be left out
	Resource string              `json:"resource"`
	Keys     map[string][]string `json:"keys,omitempty"` // condition keys
}

// Simulated describes what would become of a request, and by which statement.
type Simulated struct {
	Who      string `json:"who"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Allowed  bool   `json:"allowed"`
	Explicit bool   `json:"explicit_deny,omitempty"`
	Policy   string `json:"policy,omitempty"`
	Sid      string `json:"sid,omitempty"`
	Number   int    `json:"statement,omitempty"` // from 1 on
	Why      string `json:"why"`
}
