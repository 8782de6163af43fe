package httpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// NoUID stands for who has no number.
const NoUID = -1

// Subject is what a request was about, as far as it is reported to an audit.
type Subject struct {
	UserID string // of the identity; never given twice
	UID    int64  // of the identity, or NoUID
	Key    string // access key that the request names, right or wrong
	Target string // what was acted on; "" is the path
	Detail string // what it was changed to, without secrets
	Admin  bool   // rights were changed, by an operation that need not do so
	// Refused is why a part of what was asked for was not done, for want of a
	// right, where the answer is a success.
	Refused error
	// Removed are the keys that a request removed from its target, where it named many.
	Removed []string
	Agent   string // as the client calls itself
}

// NoteUser informs Frame who the caller is.
func NoteUser(ctx context.Context, name, id string, uid uint32) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Identity, rec.Subject.UserID, rec.Subject.UID = name, id, int64(uid)
	}
}

// NoteKey gives Frame the access key that a request names.
func NoteKey(ctx context.Context, key string) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Subject.Key = key
	}
}

// NoteTarget informs Frame what is acted on, which the first call decides, and
// how, to which every call adds.
func NoteTarget(ctx context.Context, target, detail string) {
	rec, ok := ctx.Value(recordKey{}).(*Record)
	if !ok {
		return
	}
	if rec.Subject.Target == "" {
		rec.Subject.Target = target
	}
	rec.Subject.add(detail)
}

// NoteObject informs Frame what is acted on, where only the body of a request says it.
func NoteObject(ctx context.Context, target string) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Subject.Target = target
	}
}

// NoteRefused informs Frame that a part of what was asked for was refused.
func NoteRefused(ctx context.Context, err error) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Subject.Refused = err
	}
}

// NoteRemoved informs Frame which keys were removed. It keeps the list.
func NoteRemoved(ctx context.Context, keys []string) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Subject.Removed = keys
	}
}

// maxNoteBytes bounds a text in a line of the audit: enough of a policy, or of
// several keys, to see what it is about, and with the rest of the line below what
// the log keeps of a detail.
const maxNoteBytes = 1536

// NoteText adds a name and a text of any characters to what NoteTarget gives. A
// text that is too long is cut, and distinguished from others that begin so by its digest.
func NoteText(ctx context.Context, name, text string) {
	rec, ok := ctx.Value(recordKey{}).(*Record)
	if !ok {
		return
	}
	if len(text) > maxNoteBytes {
		sum := sha256.Sum256([]byte(text))
		text = fmt.Sprintf("%s... (%d bytes, sha256=%x)", text[:maxNoteBytes], len(text), sum)
	}
	if rec.Subject.Detail != "" {
		rec.Subject.Detail += " "
	}
	rec.Subject.Detail += name + "=" + text
}

// add adds the words of detail that are not there yet.
func (s *Subject) add(detail string) {
	if s.Detail == "" || detail == "" {
		s.Detail += detail
		return
	}
	have := strings.Fields(s.Detail)
	for _, word := range strings.Fields(detail) {
		if !slices.Contains(have, word) {
			have = append(have, word)
		}
	}
	s.Detail = strings.Join(have, " ")
}

// NoteRights informs Frame that a request changes rights beside what its
// operation says: an object that is stored with an ACL.
func NoteRights(ctx context.Context, detail string) {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		rec.Subject.Admin = true
		rec.Subject.add(detail)
	}
}
