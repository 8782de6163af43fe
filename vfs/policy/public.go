package policy

// A policy is public if it allows something to everybody. Conditions take that away
// which hold for values that are stated one by one, of keys that a stranger cannot
// choose (S3 user guide, "The meaning of public").

// trusted are those keys.
var trusted = map[string]bool{
	"aws:sourceip": true, "aws:sourcearn": true, "aws:sourcevpc": true, "aws:sourcevpce": true, "aws:sourceowner": true,
	"aws:sourceaccount": true, "aws:userid": true, "aws:username": true, "aws:principalarn": true, "aws:principalaccount": true,
	"aws:principalorgid": true, "s3:dataaccesspointarn": true, "s3:dataaccesspointaccount": true,
}

const (
	// publicBits4 and publicBits6 are the shortest prefixes of networks that
	// are somebody's, not everybody's.
	publicBits4 = 8
	publicBits6 = 32
)

// Public reports whether a statement allows something to everybody.
func (d *Document) Public() bool {
	for i := range d.statements {
		if s := &d.statements[i]; s.effect == Allow && (s.who.anyone || s.who.not) && !s.closed() {
			return true
		}
	}
	return false
}

// closed reports whether a condition keeps strangers out.
func (s *statement) closed() bool {
	for i := range s.conditions {
		if s.conditions[i].closes() {
			return true
		}
	}
	return false
}

func (c *condition) closes() bool {
	if !trusted[c.key] || !c.op.fixed || c.ifExists || c.set == forAll {
		return false
	}
	for i := range c.operands {
		if !c.operands[i].fixed() {
			return false
		}
	}
	return true
}

// fixed reports whether the operand stands for one value, or one network.
func (o *operand) fixed() bool {
	if o.net.IsValid() {
		if o.net.Addr().Is4() {
			return o.net.Bits() >= publicBits4
		}
		return o.net.Bits() >= publicBits6
	}
	for i := range o.arn {
		// What a bucket or a queue is called says nothing of whose it is.
		if !o.arn[i].fixed() && i == arnParts-2 {
			return false
		}
	}
	return len(o.arn) > 0 || o.text.fixed()
}
