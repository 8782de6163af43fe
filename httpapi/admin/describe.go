package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
)

// described is a request or an answer that tells the audit what an operation
// acts on, and what it makes of it; never a secret.
type described interface {
	describe() (target, detail string)
}

// tell notes what a request or an answer says.
func tell(r *http.Request, v any) {
	if d, ok := v.(described); ok {
		target, detail := d.describe()
		httpapi.NoteTarget(r.Context(), target, detail)
	}
}

// tellPath notes what the path of a request names.
func tellPath(r *http.Request, p httprouter.Params) {
	for _, name := range []string{"name", "id"} {
		httpapi.NoteTarget(r.Context(), p.ByName(name), "")
	}
	httpapi.NoteTarget(r.Context(), "", settings("key", p.ByName("key")))
	httpapi.NoteTarget(r.Context(), "", settings("key", p.ByName("key")))
}

// settings writes names and values in turn; values that are "", false or nil
// are left out.
func settings(list ...any) string {
	var out []string
	for i := 0; i+1 < len(list); i += 2 {
		switch v := list[i+1].(type) {
		case string:
			if v == "" {
				continue
			}
		case bool:
			if !v {
				continue
			}
		case []string:
			if len(v) == 0 {
				continue
			}
		case *uint32:
			if v == nil {
				continue
			}
			list[i+1] = *v
		}
		out = append(out, fmt.Sprintf("%s=%v", list[i], list[i+1]))
	}
	return strings.Join(out, " ")
}

func (q AddUser) describe() (target, detail string) {
	return q.Name, settings("uid", q.UID, "gid", q.GID, "administrator", q.Admin, "inherit", q.Inherit, "key", q.AccessKey)
}

func (u User) describe() (target, detail string) {
	if len(u.Keys) == 0 { // removed
		return u.Name, ""
	}
	var keys []string
	for _, k := range u.Keys {
		keys = append(keys, k.ID)
	}
	return u.Name, settings("id", u.ID, "uid", u.UID, "gid", u.GID, "administrator", u.Admin, "keys", keys)
}

func (q Rotate) describe() (target, detail string) { return "", settings("keep", q.Keep) }

func (q RenameUser) describe() (target, detail string) { return "", settings("to", q.Name) }

func (q AddKey) describe() (target, detail string) { return "", settings("key", q.AccessKey) }

func (q AddBucket) describe() (target, detail string) { return q.Name, settings("owner", q.Owner) }

func (q SetBucket) describe() (target, detail string) {
	if q.Durability == nil {
		return "", ""
	}
	return "", fmt.Sprintf("durability=%q", *q.Durability)
}

func (q AddExport) describe() (target, detail string) {
	return q.Path, settings("clients", q.Clients, "read_only", q.ReadOnly, "insecure", q.Insecure, "squash", q.Squash,
		"anon_uid", q.AnonUID, "anon_gid", q.AnonGID, "secret", q.Secret)
}

func (e Export) describe() (target, detail string) {
	if e.Path == "" { // revoked
		return e.ID, ""
	}
	expires := ""
	if !e.Expires.IsZero() {
		expires = e.Expires.UTC().Format("2006-01-02T15:04:05Z")
	}
	return e.Path, settings("id", e.ID, "clients", e.Clients, "read_only", e.ReadOnly, "insecure", e.Insecure, "squash", e.Squash,
		"anon_uid", e.AnonUID, "anon_gid", e.AnonGID, "expires", expires, "secret", e.NeedsSecret)
}

func (q FreeLocks) describe() (target, detail string) { return q.Client, settings("force", q.Force) }

func (q ReleaseDamaged) describe() (target, detail string) {
	return "", settings("all", q.All, "blobs", q.Blobs)
}

func (m Mount) describe() (target, detail string) { return m.Dir, m.Settings() }

// Settings tells how it is mounted, as the audit has it.
func (m Mount) Settings() string {
	return settings("subtree", m.Subtree, "read_only", m.ReadOnly, "allow_other", m.AllowOther)
}

func (q PathRequest) describe() (target, detail string) { return q.Path, "" }

func (q CheckRequest) describe() (target, detail string) {
	return "", settings("repair", q.Repair, "data", q.Data)
}
