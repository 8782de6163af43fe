package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxTarget holds the longest bucket and key, escaped a little: of a
	// longer one the beginning is enough to find it.
	maxTarget = 2048
	// maxField bounds all other texts: they are names and addresses.
	maxField = 256
	// maxKey holds the longest key, each byte of it escaped.
	maxKey = 4 << 10
	// maxKeysBytes bounds the keys of one line as they are written, but for one that is
	// longer alone: syslog servers take 8 KiB at least (rsyslog's default).
	maxKeysBytes = 6 << 10
	// cut ends what was shortened.
	cut = "..."
)

// Line is an Event as it is stored.
type Line struct {
	Time      time.Time `json:"time"`
	Class     Class     `json:"class"`
	Door      string    `json:"door"`
	Gateway   string    `json:"gateway,omitempty"`
	Operation string    `json:"operation"`
	Target    string    `json:"target,omitempty"`
	User      string    `json:"user,omitempty"`
	UserID    string    `json:"user_id,omitempty"`
	UID       *uint32   `json:"uid,omitempty"`
	From      string    `json:"from,omitempty"`
	Result    Result    `json:"result"`
	Error     string    `json:"error,omitempty"`
	Request   string    `json:"request,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Count     uint64    `json:"count,omitempty"`
	Keys      []string  `json:"keys,omitempty"`
}

// encode returns e as one line, its end included.
func encode(e *Event) []byte {
	l := Line{
		Time: e.Time.UTC(), Class: e.Class, Door: text(e.Door, maxField), Gateway: text(e.Gateway, maxField),
		Operation: text(e.Operation, maxField), Target: text(e.Target, maxTarget),
		User: text(e.User, maxField), UserID: text(e.UserID, maxField), From: text(e.From, maxField),
		Result: e.Result, Error: text(e.Error, maxField), Request: text(e.Request, maxField),
		Detail: text(e.Detail, maxTarget), Agent: text(e.Agent, maxField), Count: e.Count,
	}
	if e.UID != NoUID {
		uid := uint32(e.UID)
		l.UID = &uid
	}
	for _, k := range e.Keys {
		l.Keys = append(l.Keys, text(k, maxKey))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(&l) // strings and numbers only: cannot fail
	return b.Bytes()
}

// lineOf returns how many of the keys, one at least if there is one, go in one line.
func lineOf(keys []string) (n int) {
	for bytes := 0; n < len(keys); n++ {
		k := text(keys[n], maxKey)
		bytes += len(`"",`) + len(k) + strings.Count(k, `"`) + strings.Count(k, `\`) // which JSON escapes
		if n > 0 && bytes > maxKeysBytes {
			break
		}
	}
	return n
}

// text returns s in printable characters, at most limit bytes. What has others
// is written as in a Go string, backslashes doubled: terminals and programs
// that show the log are not to be commanded by what clients send, and two
// names that differ are written differently.
func text(s string, limit int) string {
	if !plain(s) {
		s = s[:min(len(s), limit)] // a character may be cut: it is escaped then
		s = strconv.Quote(s)
		s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`) // a backslash at the end stays doubled
	}
	if len(s) <= limit {
		return s
	}
	s = s[:limit-len(cut)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + cut
}

func plain(s string) bool {
	for _, r := range s {
		if r == '\\' || r == utf8.RuneError || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
