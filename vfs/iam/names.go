package iam

import (
	"strings"

	"ogw/vfs/users"
)

// Bounds of IAM ("IAM and AWS STS quotas", name requirements).
const (
	maxUserName    = 64
	maxName        = 128
	maxPath        = 512
	maxDescription = 1000
)

// Account is the number of the account that groups, roles, identity providers and
// policies belong to: they are the store's. Each user is an account of its own
// (users.AccountNumber); to the trust policy of a role, this account is all of them.
const Account = "000000000000"

// The beginnings of ARNs, up to the path.
const (
	groupARN  = "arn:aws:iam::" + Account + ":group"
	policyARN = "arn:aws:iam::" + Account + ":policy"
	roleARN   = "arn:aws:iam::" + Account + ":role"
	rootARN   = "arn:aws:iam::" + Account + ":root"
	// providerARN is followed by the URL.
	providerARN = "arn:aws:iam::" + Account + ":oidc-provider/"
	// stsARN is followed by an account, federatedUser and a name.
	stsARN        = "arn:aws:sts::"
	federatedUser = ":federated-user/"
	// sessionARN is followed by the name of the role and of the session.
	sessionARN = "arn:aws:sts::" + Account + ":assumed-role/"
)

// GroupARN is the ARN of a group.
func GroupARN(path, name string) string { return groupARN + path + name }

// PolicyARN is the ARN of a managed policy.
func PolicyARN(path, name string) string { return policyARN + path + name }

// RoleARN is the ARN of a role.
func RoleARN(path, name string) string { return roleARN + path + name }

// SessionARN is the ARN of a session of a role.
func SessionARN(role, session string) string { return sessionARN + role + "/" + session }

// ProviderARN is the ARN of an identity provider.
func ProviderARN(url string) string { return providerARN + url }

// ValidUserName returns an Error for a name that IAM would refuse for a user.
func ValidUserName(name string) error { return validName("userName", name, maxUserName) }

func validName(parameter, name string, most int) error {
	if name == "" {
		return fault(ValidationError, "1 validation error detected: Value '' at '%s' failed to satisfy constraint: Member must have length greater than or equal to 1", parameter)
	}
	if len(name) > most {
		return fault(ValidationError, "1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", parameter, most)
	}
	for _, c := range []byte(name) {
		if c-'0' > 9 && c|0x20-'a' > 25 && !strings.ContainsRune("_+=,.@-", rune(c)) {
			return fault(ValidationError, "The specified value for %s is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-", parameter)
		}
	}
	return nil
}

func validPath(path string) (string, error) {
	if path == "" {
		return "/", nil
	}
	if len(path) > maxPath || path[0] != '/' || path[len(path)-1] != '/' || strings.ContainsFunc(path, func(c rune) bool { return c < '!' || c > '~' || c == '*' || c == '?' }) {
		return "", fault(ValidationError, "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.")
	}
	return path, nil
}

// nameOfARN returns path and name of what is called by its ARN, which begins so, or by
// its name alone ("" for the path then).
func nameOfARN(begin, arn string) (path, name string) {
	rest, ok := strings.CutPrefix(arn, begin)
	if !ok {
		return "", arn
	}
	end := strings.LastIndexByte(rest, '/') + 1
	return rest[:end], rest[end:]
}

func userARN(u *users.User) string { return users.ARN(u.UID, u.Name) }
