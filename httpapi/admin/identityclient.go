package admin

import (
	"context"
	"encoding/json"
	"net/url"
)

// path is one of the API with names in it.
func path(parts ...string) string {
	p := "/v1"
	for _, part := range parts {
		p += "/" + url.PathEscape(part)
	}
	return p
}

// Roles lists the roles.
func (c *Client) Roles(ctx context.Context) ([]Role, error) {
	return ask[[]Role](ctx, c, "GET", "/v1/roles", nil)
}

// Role returns a role.
func (c *Client) Role(ctx context.Context, name string) (Role, error) {
	return ask[Role](ctx, c, "GET", path("roles", name), nil)
}

// AddRole adds a role.
func (c *Client) AddRole(ctx context.Context, q AddRole) (Role, error) {
	return ask[Role](ctx, c, "POST", "/v1/roles", q)
}

// SetTrust replaces who may assume a role.
func (c *Client) SetTrust(ctx context.Context, name string, trust json.RawMessage) (Role, error) {
	return ask[Role](ctx, c, "PUT", path("roles", name, "trust"), AddRole{Trust: trust})
}

// RevokeRole ends the sessions of a role that were begun before now.
func (c *Client) RevokeRole(ctx context.Context, name string) (Role, error) {
	return ask[Role](ctx, c, "POST", path("roles", name, "revoke"), nil)
}

// RemoveRole removes a role with what it holds.
func (c *Client) RemoveRole(ctx context.Context, name string) (Role, error) {
	return ask[Role](ctx, c, "DELETE", path("roles", name), nil)
}

// Groups lists the groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return ask[[]Group](ctx, c, "GET", "/v1/groups", nil)
}

// AddGroup adds a group.
func (c *Client) AddGroup(ctx context.Context, name string) (Group, error) {
	return ask[Group](ctx, c, "POST", "/v1/groups", AddGroup{name})
}

// RemoveGroup removes a group without users and policies.
func (c *Client) RemoveGroup(ctx context.Context, name string) (Group, error) {
	return ask[Group](ctx, c, "DELETE", path("groups", name), nil)
}

// SetMember puts a user into a group, or takes it out.
func (c *Client) SetMember(ctx context.Context, group, user string, in bool) (Group, error) {
	return ask[Group](ctx, c, map[bool]string{true: "PUT", false: "DELETE"}[in], path("groups", group, "users", user), nil)
}

// Policies lists the managed policies, without documents.
func (c *Client) Policies(ctx context.Context) ([]Policy, error) {
	return ask[[]Policy](ctx, c, "GET", "/v1/policies", nil)
}

// Policy returns a managed policy.
func (c *Client) Policy(ctx context.Context, name string) (Policy, error) {
	return ask[Policy](ctx, c, "GET", path("policies", name), nil)
}

// PutPolicy makes a managed policy, or puts another version of it in force.
func (c *Client) PutPolicy(ctx context.Context, name string, document json.RawMessage) (Policy, error) {
	return ask[Policy](ctx, c, "PUT", path("policies", name), PutPolicy{document})
}

// RemovePolicy removes a managed policy that nothing uses.
func (c *Client) RemovePolicy(ctx context.Context, name string) (Policy, error) {
	return ask[Policy](ctx, c, "DELETE", path("policies", name), nil)
}

// SetAttached attaches a policy to a user, group or role, or detaches it.
func (c *Client) SetAttached(ctx context.Context, policy, kind, name string, on bool) (Attachment, error) {
	return ask[Attachment](ctx, c, map[bool]string{true: "PUT", false: "DELETE"}[on], path("policies", policy, "on", kind, name), nil)
}

// Simulate returns who may do something.
func (c *Client) Simulate(ctx context.Context, q Simulate) ([]Simulated, error) {
	return ask[[]Simulated](ctx, c, "POST", "/v1/simulate", q)
}
