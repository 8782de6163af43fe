package admin

import (
	"fmt"
)

func (q AddUser) describe() (target, detail string) {
	return q.Name, settings("uid", q.UID, "gid", q.GID, "administrator", q.Admin, "inherit", q.Inherit, "key", q.AccessKey, "may_read", q.MayRead)
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

func (q AddRole) describe() (target, detail string) { return q.Name, "" }

func (q AddGroup) describe() (target, detail string) { return q.Name, "" }

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

// Settings describes how it is mounted, as the audit has it.
func (m Mount) Settings() string {
	return settings("subtree", m.Subtree, "read_only", m.ReadOnly, "allow_other", m.AllowOther)
}

func (q PathRequest) describe() (target, detail string) { return q.Path, "" }

func (q CheckRequest) describe() (target, detail string) {
	return "", settings("repair", q.Repair, "data", q.Data)
}
