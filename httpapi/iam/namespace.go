package iam

import (
	"context"

	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// namespace is what this door needs of a vfs.FS: identities, and the judge of what they
// may do with objects.
type namespace interface {
	Users() *users.Registry
	IAM() *iam.Directory
	AssumeRole(ctx context.Context, q iam.Assume) (iam.Credentials, error)
	Simulate(ctx context.Context, who string, actions, resources []string, values policy.Values) ([]vfs.Simulated, error)
}
