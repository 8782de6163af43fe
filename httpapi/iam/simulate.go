package iam

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"ogw/vfs"
	"ogw/vfs/iam"
)

// maxSimulated bounds each list of a simulation.
const maxSimulated = 100

// contextKeys are condition keys that a simulation states. It implements policy.Values.
type contextKeys map[string][]string

// Value implements policy.Values.
func (k contextKeys) Value(key string) ([]string, bool) {
	v, ok := k[key]
	return v, ok
}

type matchedXML struct {
	Source string `xml:"SourcePolicyId"`
	Kind   string `xml:"SourcePolicyType"`
}

type evaluationXML struct {
	Action   string              `xml:"EvalActionName"`
	Resource string              `xml:"EvalResourceName"`
	Decision string              `xml:"EvalDecision"`
	Matched  members[matchedXML] `xml:"MatchedStatements"`
	Missing  members[string]     `xml:"MissingContextValues"`
}

func showEvaluation(s *answered) evaluationXML {
	x := evaluationXML{Action: s.Action, Resource: s.Resource, Decision: "implicitDeny"}
	switch {
	case s.Allowed:
		x.Decision = "allowed"
	case s.Explicit:
		x.Decision = "explicitDeny"
	}
	if s.Number > 0 {
		x.Matched.Member = []matchedXML{{s.Policy, "IAM Policy"}}
	}
	return x
}

// answered is one answer of a simulation. They stand in the order of the request, and one
// that asks something twice is answered twice: in pages, an answer is named by its place.
type answered struct {
	vfs.Simulated
	place int
}

func (a *answered) name() string { return fmt.Sprintf("%09d", a.place) }

// simulatedList returns the parameters NAME.member.N (and a field of each), and refuses
// more than are read.
func (q *request) simulatedList(name, field string) ([]string, error) {
	list := q.list(name, field, maxSimulated)
	if len(list) > maxSimulated {
		return nil, newError(string(iam.ValidationError), http.StatusBadRequest, "1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", name, maxSimulated)
	}
	return list, nil
}

// simulatedKeys returns the condition keys that are stated.
func (q *request) simulatedKeys() (contextKeys, error) {
	const entries = "ContextEntries"
	names, err := q.simulatedList(entries, ".ContextKeyName")
	keys := contextKeys{}
	for i, name := range names {
		values, e := q.simulatedList(entries+".member."+strconv.Itoa(i+1)+".ContextKeyValues", "")
		keys[strings.ToLower(name)], err = values, errors.Join(err, e)
	}
	return keys, err
}

// simulatePrincipal is SimulatePrincipalPolicy: what is stored decides, with buckets'
// policies and ACLs.
func simulatePrincipal(q *request) (any, error) {
	who, err := q.param("PolicySourceArn")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"PolicyInputList.member.1", "PermissionsBoundaryPolicyInputList.member.1", "ResourcePolicy"} {
		if q.form.Get(name) != "" {
			return nil, newError("NotImplemented", http.StatusNotImplemented, "Policies are not taken from requests: what is stored decides.")
		}
	}
	actions, err := q.simulatedList("ActionNames", "")
	if err != nil {
		return nil, err
	}
	resources, err := q.simulatedList("ResourceArns", "")
	if err != nil {
		return nil, err
	}
	if resources == nil {
		resources = []string{"*"}
	}
	keys, err := q.simulatedKeys()
	if err != nil {
		return nil, err
	}
	list, err := q.fs.Simulate(q.ctx, who, actions, resources, keys)
	if err != nil {
		return nil, err
	}
	answers := make([]answered, len(list))
	for i, s := range list {
		answers[i] = answered{s, i}
	}
	answers, more, err := page(q, answers, (*answered).name)
	return struct {
		Results members[evaluationXML] `xml:"EvaluationResults"`
		paged
	}{membersOf(answers, showEvaluation), more}, err
}
