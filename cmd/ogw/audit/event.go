package audit

import "time"

// Class is why something is logged.
type Class string

const (
	// Admin are changes of users, keys, buckets, exports, ACLs, locks,
	// mounts and of the configuration.
	Admin Class = "admin"
	// Access are refusals.
	Access Class = "access"
	// Data are all other operations.
	Data Class = "data"
	// None is never written, unless it was refused: what clients ask many
	// times before each thing that they do.
	None Class = ""
)

// Result is how something ended.
type Result string

const (
	OK      Result = "ok"
	Refused Result = "refused" // for want of a right, or of credentials
	Failed  Result = "failed"  // for any other reason; nothing was changed, or it is unknown
)

// NoUID stands for a user without a number.
const NoUID = -1

// Event is one line, or more (Keys). Doors' words are used throughout: an operation is called
// as its protocol calls it.
type Event struct {
	Time      time.Time // when it ended; zero: now
	Class     Class
	Door      string // protocol: s3, rest, nfs, fuse, admin; "process" is none of them
	Gateway   string // name in the configuration
	Operation string
	Target    string // bucket, bucket/key, user, export, ...
	User      string // name, "" for nobody
	UserID    string // never given twice
	UID       int64  // or NoUID
	From      string // address of the client, or its local user
	Result    Result
	Error     string // the door's own code, "" for none
	Request   string // the ID that the client got, too
	Detail    string // what was changed to what
	Agent     string // as the client calls itself
	Count     uint64 // of what this line stands for, 0 for one
	// Keys are what it was done to, within Target, one by one: all are written, in as many
	// lines as they need, which have all else in common.
	Keys []string
	// Fill, if set, completes the event. It is called only if there will be
	// a line, for what costs something to find out.
	Fill func(*Event)
}
