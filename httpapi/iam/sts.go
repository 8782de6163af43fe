package iam

import (
	"errors"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/iam/oidc"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// maxSessionARNs bounds the managed policies of a session that are read; one more than
// it may have is noticed.
const maxSessionARNs = 10

type credentialsXML struct {
	AccessKeyID  string `xml:"AccessKeyId"`
	Secret       string `xml:"SecretAccessKey"`
	SessionToken string
	Expiration   string
}

type assumedXML struct {
	Arn string
	ID  string `xml:"AssumedRoleId"`
}

type assumeResult struct {
	Credentials credentialsXML
	AssumedRole assumedXML `xml:"AssumedRoleUser"`
	Packed      int        `xml:"PackedPolicySize,omitempty"`
	*webXML
}

// webXML is the part of an answer about a web identity.
type webXML struct {
	Subject  string `xml:"SubjectFromWebIdentityToken"`
	Audience string
	Provider string
}

func showCredentials(c *iam.Credentials) credentialsXML {
	return credentialsXML{c.Key, c.Secret, c.Token, c.ExpiresAt().Format(timeFormat)}
}

// assume reads what both ways to a role have.
func (q *request) assume() (a iam.Assume, err error) {
	p, err := q.params("RoleArn", "RoleSessionName")
	if err != nil {
		return a, err
	}
	a = iam.Assume{Role: p[0], Session: p[1], Managed: q.list("PolicyArns", ".arn", maxSessionARNs), Key: q.key, By: q.session}
	if text := q.form.Get("Policy"); text != "" {
		a.Policy = []byte(text)
	}
	for _, name := range []string{"SerialNumber", "TokenCode", "SourceIdentity", "Tags.member.1.Key", "ProvidedContexts.member.1.ProviderArn"} {
		if q.form.Get(name) != "" {
			return a, newError("NotImplemented", http.StatusNotImplemented, "The parameter %s is not implemented here.", name)
		}
	}
	a.Duration, err = q.number("DurationSeconds")
	return a, err
}

func (q *request) assumed(a iam.Assume, web *webXML) (any, error) {
	c, err := q.fs.AssumeRole(q.ctx, a)
	if err != nil {
		return nil, err
	}
	httpapi.NoteText(q.ctx, "session", c.SessionARN())
	httpapi.NoteText(q.ctx, "key", c.Key)
	return assumeResult{showCredentials(&c), assumedXML{c.SessionARN(), c.ID()}, c.PackedPercent, web}, nil
}

func assumeRole(q *request) (any, error) {
	a, err := q.assume()
	if err != nil {
		return nil, err
	}
	return q.assumed(a, nil)
}

// getSessionToken is for access keys of users: sessions do not beget sessions.
func getSessionToken(q *request) (any, error) {
	if q.session != nil {
		return nil, newError("AccessDenied", http.StatusForbidden, "Cannot call GetSessionToken with session credentials")
	}
	if q.form.Get("SerialNumber") != "" || q.form.Get("TokenCode") != "" {
		return nil, newError("NotImplemented", http.StatusNotImplemented, "There are no MFA devices here.")
	}
	seconds, err := q.number("DurationSeconds")
	if err != nil {
		return nil, err
	}
	c, err := q.fs.IAM().UserSession(q.ctx, q.key, seconds)
	if err != nil {
		return nil, err
	}
	httpapi.NoteText(q.ctx, "key", c.Key)
	return struct{ Credentials credentialsXML }{showCredentials(&c)}, nil
}

// assumeRoleWeb verifies a web identity, which asks from then on.
func assumeRoleWeb(q *request) (any, error) {
	token, err := q.param("WebIdentityToken")
	if err != nil {
		return nil, err
	}
	a, err := q.assume()
	if err != nil {
		return nil, err
	}
	try, err := q.cfg.Guesses.Try(fair.Subscriber(q.r.RemoteAddr), "web identity", "")
	if err != nil {
		return nil, err
	}
	claims, err := q.issuers.Verify(q.ctx, token, q.fs.IAM().ProviderOf)
	if errors.Is(err, oidc.ErrInvalid) || errors.Is(err, oidc.ErrExpired) || errors.Is(err, oidc.ErrRejected) {
		try.Wrong() // a provider that is away makes no token wrong
	}
	if err != nil {
		return nil, err
	}
	try.Right()
	a.Key, a.By, a.Provider = "", nil, claims.Provider
	name := strings.ToLower(claims.Provider)
	q.ctx = vfs.WithSubject(q.r.Context(), &vfs.Subject{UID: vfs.NobodyUID, GID: vfs.NobodyUID, Call: &vfs.Call{Values: &conditionKeys{r: q.r, form: q.form,
		claims: map[string]string{name + ":aud": claims.Audience, name + ":sub": claims.Subject, "aws:federatedprovider": iam.ProviderARN(claims.Provider)}}}})
	httpapi.NoteText(q.ctx, "subject", claims.Subject)
	return q.assumed(a, &webXML{claims.Subject, claims.Audience, iam.ProviderARN(claims.Provider)})
}

type federatedXML struct {
	Arn string
	ID  string `xml:"FederatedUserId"`
}

type federationResult struct {
	Credentials credentialsXML
	User        federatedXML `xml:"FederatedUser"`
	Packed      int          `xml:"PackedPolicySize,omitempty"`
}

// getFederationToken is for access keys of users, as getSessionToken.
func getFederationToken(q *request) (any, error) {
	if q.session != nil {
		return nil, newError("AccessDenied", http.StatusForbidden, "Cannot call GetFederationToken with session credentials")
	}
	if q.form.Get("Tags.member.1.Key") != "" {
		return nil, newError("NotImplemented", http.StatusNotImplemented, "The parameter Tags is not implemented here.")
	}
	name, err := q.param("Name")
	if err != nil {
		return nil, err
	}
	ask := iam.Federate{Name: name, Managed: q.list("PolicyArns", ".arn", maxSessionARNs), Key: q.key}
	if text := q.form.Get("Policy"); text != "" {
		ask.Policy = []byte(text)
	}
	if ask.Duration, err = q.number("DurationSeconds"); err != nil {
		return nil, err
	}
	c, err := q.fs.IAM().Federation(q.ctx, ask)
	if err != nil {
		return nil, err
	}
	httpapi.NoteText(q.ctx, "session", c.SessionARN())
	httpapi.NoteText(q.ctx, "key", c.Key)
	return federationResult{showCredentials(&c), federatedXML{c.SessionARN(), c.ID()}, c.PackedPercent}, nil
}

type callerXML struct {
	Arn     string
	UserID  string `xml:"UserId"`
	Account string
}

func getCallerIdentity(q *request) (any, error) {
	switch s := q.session; {
	case s == nil:
	case s.Role():
		return callerXML{s.SessionARN(), s.ID(), iam.Account}, nil
	case s.Federated():
		return callerXML{s.SessionARN(), s.ID(), users.AccountNumber(q.user.UID)}, nil
	}
	return callerXML{users.ARN(q.user.UID, q.user.Name), string(q.user.ID), users.AccountNumber(q.user.UID)}, nil
}
