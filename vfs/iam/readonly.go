package iam

import (
	"encoding/json"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/users"
)

// ReadPolicy is the name of the inline policy that a user gets who may only read.
const ReadPolicy = "may-read"

// escapes write what is special to patterns as itself.
var escapes = strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}")

type readStatement struct {
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// ReadOnly returns a policy that allows to list and to read places, each a bucket, or
// a bucket, a slash and what keys begin with, and nothing else.
func ReadOnly(places []string) ([]byte, error) {
	var statements []readStatement
	for _, place := range places {
		bucket, prefix, _ := strings.Cut(place, "/")
		if bucket == "" || strings.ContainsAny(bucket, "*?$:") {
			return nil, fault(InvalidInput, "%q does not begin with the name of a bucket", place)
		}
		prefix = escapes.Replace(prefix) + "*"
		list := readStatement{Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: s3ARN + bucket}
		if prefix != "*" {
			list.Condition = map[string]map[string]string{"StringLike": {"s3:prefix": prefix}}
		}
		statements = append(statements, list,
			readStatement{Effect: "Allow", Action: []string{"s3:GetBucketLocation"}, Resource: s3ARN + bucket},
			readStatement{Effect: "Allow", Action: []string{"s3:GetObject", "s3:GetObjectAttributes", "s3:GetObjectTagging"}, Resource: s3ARN + bucket + "/" + prefix})
	}
	return json.Marshal(struct {
		Version   string
		Statement []readStatement
	}{"2012-10-17", statements})
}

// s3ARN begins the ARNs of buckets.
const s3ARN = "arn:aws:s3:::"

// WithInline is for users.Options.Also: the new user holds an inline policy from the
// first moment on. *policy.Error.
func (d *Directory) WithInline(name string, text []byte) (func(t cluster.Txn, u *users.User) error, error) {
	p := record.Permissions{Inline: []record.InlinePolicy{{Name: name, Text: text}}}
	if err := validName("policyName", name, maxName); err != nil {
		return nil, err
	}
	if _, err := compile(text); err != nil {
		return nil, err
	}
	if err := inlineFits(Holder{Kind: User}, &p); err != nil {
		return nil, err
	}
	return func(t cluster.Txn, u *users.User) error {
		if err := putPermissions(t, string(u.ID), &p); err != nil {
			return err
		}
		return t.Set(record.RevisionKey(), record.NewRevision())
	}, nil
}
