package policy

// Request is what somebody asks for.
type Request struct {
	// Action such as "s3:GetObject".
	Action string
	// Resource is the ARN that the action is about, such as
	// "arn:aws:s3:::bucket/key".
	Resource string
	// Principal is the caller.
	Principal Principal
	// Values holds the values of condition keys; nil: no key has a value.
	Values Values
}

// Principal is the caller, by the names that a document may use. The zero value is an
// anonymous request, which only "*" names.
type Principal struct {
	// ID is an ID that is never given twice: of the user, or of the role whose
	// session asks.
	ID string
	// Name names a session itself, "" for who is in none.
	Name string
	// Account is the ID of the account that ID belongs to; the same for an account
	// itself.
	Account string
}

// Values are the condition keys of one request.
type Values interface {
	// Value returns what a key, in lower case, is worth, and false for one that
	// the request does not have. The next call may overwrite a slice of one.
	Value(key string) ([]string, bool)
}

// Effect is the decision of a document about a request.
type Effect uint8

// The effects, in order of precedence.
const (
	None Effect = iota
	// AllowAccount allows it to the account of the caller, whose own policies
	// decide to whom it passes that on.
	AllowAccount
	// AllowRole allows it to the role whose session asks: what bounds the role and
	// the session bounds this.
	AllowRole
	Allow
	Deny
)

var effectNames = [...]string{"none", "allow to the account", "allow to the role", "allow", "deny"}

func (e Effect) String() string { return effectNames[e] }
