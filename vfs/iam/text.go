package iam

import (
	"unicode"

	"ogw/vfs/policy"
)

// Bounds of texts, without white space (IAM).
const (
	maxManagedText  = 6144
	maxTextBytes    = 128 << 10 // with white space: the API's own bound
	maxInlineUser   = 2048
	maxInlineGroup  = 5120
	maxInlineRole   = 10240
	maxHeldPolicies = 10
)

// weight is the length of a policy as IAM counts it.
func weight(text []byte) (n int) {
	for _, c := range string(text) {
		if !unicode.IsSpace(c) {
			n++
		}
	}
	return n
}

// compile reads the policy of an identity.
func compile(text []byte) (*policy.Document, error) {
	return policy.Parse(text, policy.Options{Kind: policy.Identity, MaxBytes: maxTextBytes})
}

func compileTrust(text []byte) (*policy.Document, error) {
	return policy.Parse(text, policy.Options{Kind: policy.Trust, MaxBytes: maxTextBytes})
}
