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

// Account is the number of the account that groups and policies belong to: they are
// the store's. Each user is an account of its own (users.AccountNumber).
const Account = "000000000000"

// The beginnings of ARNs, up to the path.
const (
	groupARN  = "arn:aws:iam::" + Account + ":group"
	policyARN = "arn:aws:iam::" + Account + ":policy"
)

// GroupARN is the ARN of a group.
func GroupARN(path, name string) string { return groupARN + path + name }

// PolicyARN is the ARN of a managed policy.
func PolicyARN(path, name string) string { return policyARN + path + name }

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

// nameOfARN returns path and name of a policy that is called by its ARN, or by its
// name alone ("" for the path then).
func nameOfARN(arn string) (path, name string) {
	rest, ok := strings.CutPrefix(arn, policyARN)
	if !ok {
		return "", arn
	}
	end := strings.LastIndexByte(rest, '/') + 1
	return rest[:end], rest[end:]
}

func userARN(u *users.User) string { return users.ARN(u.UID, u.Name) }
