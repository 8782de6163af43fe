package rights

import (
	"fmt"
	"strings"

	"ogw/vfs/iam"
	"ogw/vfs/policy"
)

// What STS answers without a right, or not to the caller.

// What sts calls the requests that no policy decides.
const (
	callerIdentity  = "sts:GetCallerIdentity"
	sessionToken    = "sts:GetSessionToken"
	federationToken = "sts:GetFederationToken"
)

// asksFreely reports whether a request needs no right; an error for those who never
// may: who is nobody, and sessions where these beget none.
func (s *Subject) asksFreely(action string) (bool, error) {
	switch action {
	case callerIdentity, sessionToken, federationToken:
	default:
		return false, nil
	}
	switch {
	case Anonymous(s):
		return false, &iam.Denied{Message: "an anonymous caller is not authorized to perform: " + action}
	case s.Session != nil && action != callerIdentity:
		return false, &iam.Denied{Message: fmt.Sprintf("User: %s is not authorized to perform: %s with session credentials", s.arn(), action)}
	}
	return true, nil
}

// federatedProvider is the condition key that says who vouched for a web identity.
const federatedProvider = "aws:federatedprovider"

// simulatesWeb returns what becomes of a request to assume a role by a web identity. Whoever
// sends it, the identity asks: the keys that are stated say whose, and of which provider.
func (j *Judge) simulatesWeb(role string) error {
	web := *Nobody
	web.Call = j.Subject.Call
	j.Subject = &web
	var provider string
	if v := web.Call.Values; v != nil {
		if list, ok := v.Value(federatedProvider); ok && len(list) == 1 {
			provider = list[0]
		}
	}
	if !strings.HasPrefix(provider, iam.ProviderARN("")) {
		return &iam.Denied{Message: "no identity provider is stated, by its ARN in aws:FederatedProvider"}
	}
	_, trust, err := j.rules.IAM.Trust(j.R, role)
	if noRole(err) {
		return web.mayNotAssume(assumeRoleWeb, role)
	}
	if err != nil {
		return err
	}
	return j.assumes(trust, assumeRoleWeb, policy.Principal{Name: policy.Federated(provider)}, role)
}
