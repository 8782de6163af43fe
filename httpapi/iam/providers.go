package iam

import (
	"slices"

	"ogw/vfs/iam"
)

// maxListed bounds the members of a list that is read: more than any of them may have.
const maxListed = 100

type providerXML struct {
	URL         string          `xml:"Url"`
	Audiences   members[string] `xml:"ClientIDList"`
	Thumbprints members[string] `xml:"ThumbprintList"`
	CreateDate  string
}

type providerARN struct {
	Arn string `xml:"OpenIDConnectProviderArn"`
}

func ofProvider(fn func(q *request, url string) (any, error)) handler {
	return func(q *request) (any, error) {
		arn, err := q.param("OpenIDConnectProviderArn")
		if err != nil {
			return nil, err
		}
		url, err := iam.ProviderOfARN(arn)
		if err != nil {
			return nil, err
		}
		return fn(q, url)
	}
}

func createProvider(q *request) (any, error) {
	issuer, err := q.param("Url")
	if err == nil {
		err = q.noTags()
	}
	if err != nil {
		return nil, err
	}
	p, err := q.fs.IAM().CreateProvider(q.ctx, issuer, q.list("ClientIDList", "", maxListed), q.list("ThumbprintList", "", maxListed))
	return providerARN{iam.ProviderARN(p.URL)}, err
}

func getProvider(q *request, url string) (any, error) {
	p, err := q.fs.IAM().Provider(q.ctx, url)
	return providerXML{p.URL, members[string]{p.Audiences}, members[string]{p.Thumbprints}, timeOf(p.Created)}, err
}

// listProviders lists all: there are few.
func listProviders(q *request) (any, error) {
	list, err := q.fs.IAM().Providers(q.ctx)
	return struct {
		List members[struct{ Arn string }] `xml:"OpenIDConnectProviderList"`
	}{membersOf(list, func(p *iam.Provider) struct{ Arn string } { return struct{ Arn string }{iam.ProviderARN(p.URL)} })}, err
}

func deleteProvider(q *request, url string) (any, error) {
	return nil, q.fs.IAM().DeleteProvider(q.ctx, url)
}

func addAudience(q *request, url string) (any, error) {
	id, err := q.param("ClientID")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().ChangeProvider(q.ctx, "AddClientIDToOpenIDConnectProvider", url, func(p *iam.Provider) {
		if !slices.Contains(p.Audiences, id) {
			p.Audiences = append(p.Audiences, id)
		}
	})
}

func removeAudience(q *request, url string) (any, error) {
	id, err := q.param("ClientID")
	if err != nil {
		return nil, err
	}
	return nil, q.fs.IAM().ChangeProvider(q.ctx, "RemoveClientIDFromOpenIDConnectProvider", url, func(p *iam.Provider) {
		p.Audiences = slices.DeleteFunc(p.Audiences, func(had string) bool { return had == id })
	})
}

func setThumbprints(q *request, url string) (any, error) {
	return nil, q.fs.IAM().ChangeProvider(q.ctx, "UpdateOpenIDConnectProviderThumbprint", url, func(p *iam.Provider) {
		p.Thumbprints = q.list("ThumbprintList", "", maxListed)
	})
}
