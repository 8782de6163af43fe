package iam

import (
	"net/http"
	"strconv"

	"ogw/vfs/iam"
)

// param returns a parameter that must be there.
func (q *request) param(name string) (string, error) {
	v := q.form.Get(name)
	if v == "" {
		lower := string(name[0]|0x20) + name[1:]
		return "", newError(string(iam.ValidationError), http.StatusBadRequest, "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", lower)
	}
	return v, nil
}

// params returns several that must be there.
func (q *request) params(names ...string) ([]string, error) {
	list := make([]string, len(names))
	for i, name := range names {
		v, err := q.param(name)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

// userName is the user that a request is about: the caller, unless it says another.
func (q *request) userName() string {
	if name := q.form.Get("UserName"); name != "" {
		return name
	}
	return q.user.Name
}

// number returns a parameter that is a number, 0 if it is not there.
func (q *request) number(name string) (int, error) {
	v := q.form.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return 0, newError("MalformedInput", http.StatusBadRequest, "The value %.32q of %s is no number above 0.", v, name)
	}
	return n, nil
}

// list returns the parameters NAME.member.N (and a field of each), at most that many.
func (q *request) list(name, field string, most int) (list []string) {
	for i := 1; i <= most+1; i++ {
		v := q.form.Get(name + ".member." + strconv.Itoa(i) + field)
		if v == "" {
			break
		}
		list = append(list, v)
	}
	return list
}

// noTags refuses tags: nothing here keeps them.
func (q *request) noTags() error {
	if q.list("Tags", ".Key", 1) != nil {
		return newError("NotImplemented", http.StatusNotImplemented, "Identities have no tags here.")
	}
	return nil
}
