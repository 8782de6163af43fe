package iam

import (
	"net/http"
	"strconv"
	"strings"

	"ogw/vfs"
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

func showEvaluation(s *vfs.Simulated) evaluationXML {
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
	actions, resources := q.list("ActionNames", "", maxSimulated), q.list("ResourceArns", "", maxSimulated)
	if resources == nil {
		resources = []string{"*"}
	}
	keys := contextKeys{}
	for i := 1; i <= maxSimulated; i++ {
		entry := "ContextEntries.member." + strconv.Itoa(i) + "."
		name := q.form.Get(entry + "ContextKeyName")
		if name == "" {
			break
		}
		keys[strings.ToLower(name)] = q.list(entry+"ContextKeyValues", "", maxSimulated)
	}
	list, err := q.fs.Simulate(q.ctx, who, actions, resources, keys)
	if err != nil {
		return nil, err
	}
	list, more, err := page(q, list, func(s *vfs.Simulated) string { return s.Action + " " + s.Resource })
	return struct {
		Results members[evaluationXML] `xml:"EvaluationResults"`
		paged
	}{membersOf(list, showEvaluation), more}, err
}
