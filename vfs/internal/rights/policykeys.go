package rights

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/vfs/iam"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
	"ogw/vfs/users"
)

// policyKeys are the condition keys of one request: what is known here of the user,
// the object and the time, and what the door knows of the rest (Call.Values).
type policyKeys struct {
	anonymous bool
	session   *iam.Session // nil: an access key asks
	user      record.UserID
	name      string
	uid       uint32
	now       func() time.Time
	tags      string        // of the object, as they are kept
	list      *List         // of a list
	policyARN string        // of the managed policy that is attached or detached
	boundary  string        // of the policy that bounds who is made
	values    policy.Values // nil: the door knows nothing
	one       [1]string
}

// List is what a list is limited to.
type List struct {
	Prefix, Delimiter string
	MaxKeys           int
}

const (
	// existingTag begins the keys that are the object's tags.
	existingTag = "s3:existingobjecttag/"
	// payerKey says that the requester will pay.
	payerKey  = "s3:x-amz-request-payer"
	requester = "requester"
)

// Value implements policy.Values.
func (k *policyKeys) Value(key string) ([]string, bool) {
	if service, name, _ := strings.Cut(key, ":"); service == "aws" {
		if v, ok := k.own(name); ok {
			k.one[0] = v
			return k.one[:], true
		}
	}
	if tag, ok := strings.CutPrefix(key, existingTag); ok {
		return k.tag(tag)
	}
	if k.values != nil {
		if v, ok := k.values.Value(key); ok {
			return v, true
		}
	}
	switch key {
	case "iam:policyarn":
		k.one[0] = k.policyARN
	case "iam:permissionsboundary":
		k.one[0] = k.boundary
	default:
		return k.listed(key)
	}
	return k.one[:], k.one[0] != ""
}

// own is what a key of AWS's is worth that says who the caller is, and when.
func (k *policyKeys) own(name string) (string, bool) {
	switch name {
	case "currenttime":
		return k.now().UTC().Format(time.RFC3339), true
	case "epochtime":
		return strconv.FormatInt(k.now().Unix(), 10), true
	case "principalisawsservice", "viaawsservice":
		return "false", true
	case "principaltype":
		if k.anonymous {
			return "Anonymous", true
		}
		if k.session != nil && k.session.Role() {
			return "AssumedRole", true
		}
		if k.session != nil && k.session.Federated() {
			return "FederatedUser", true
		}
		return "User", true
	case "userid":
		switch {
		case k.anonymous:
			return "anonymous", true
		case k.session != nil:
			return k.session.ID(), true
		}
		return string(k.user), true
	}
	if k.anonymous {
		return "", false
	}
	if k.session != nil {
		if v, ok := k.ofSession(name); ok || k.session.Role() {
			return v, ok
		}
	}
	switch name {
	case "username":
		return k.name, k.name != "" && (k.session == nil || !k.session.Federated())
	case "principalarn":
		return users.ARN(k.uid, k.name), k.name != ""
	case "principalaccount":
		return users.AccountNumber(k.uid), true
	}
	return "", false
}

// ofSession is what a key is worth that only temporary credentials have, or that is
// another for a role.
func (k *policyKeys) ofSession(name string) (string, bool) {
	s := k.session
	switch name {
	case "tokenissuetime":
		return time.Unix(s.Issued, 0).UTC().Format(time.RFC3339), true
	case "multifactorauthpresent":
		return "false", true
	case "federatedprovider":
		return iam.ProviderARN(s.Provider), s.Provider != ""
	case "principalarn":
		return s.ARN, s.ARN != ""
	case "principalaccount":
		return iam.Account, s.Role()
	}
	return "", false
}

// tag is the value of the object's tag of that name, in whatever case. Two names that
// differ in case alone are two values.
func (k *policyKeys) tag(name string) ([]string, bool) {
	tags, err := url.ParseQuery(k.tags)
	if err != nil {
		return nil, false
	}
	var values []string
	for tag, v := range tags {
		if strings.EqualFold(tag, name) {
			values = append(values, v...)
		}
	}
	slices.Sort(values)
	return values, len(values) > 0
}

// listed is what a list is limited to, where the door does not say it.
func (k *policyKeys) listed(key string) ([]string, bool) {
	o := k.list
	if o == nil {
		return nil, false
	}
	switch key {
	case "s3:prefix":
		k.one[0] = o.Prefix
	case "s3:delimiter":
		k.one[0] = o.Delimiter
	case "s3:max-keys":
		k.one[0] = strconv.Itoa(o.MaxKeys)
	default: // what was asked for before is still in one
		return nil, false
	}
	return k.one[:], k.one[0] != ""
}
