package rights

// AccessBlock is what no ACL or policy of a bucket may do, whoever sets it: S3's public
// access block. It is kept as the configuration AccessBlockConfig, in one byte.
type AccessBlock uint8

// The bits are stored.
const (
	BlockPublicACLs       AccessBlock = 1 << iota // ACLs that grant to everybody, or to all users, are refused
	IgnorePublicACLs                              // such grants give nothing
	BlockPublicPolicies                           // public policies are refused
	RestrictPublicBuckets                         // public policies give nothing to strangers
)

// AccessBlockConfig is the name under which BucketConfig keeps it.
const AccessBlockConfig = "publicAccessBlock"

// ReadAccessBlock reads what is kept. What is not understood blocks everything.
func ReadAccessBlock(v []byte) AccessBlock {
	switch len(v) {
	case 0:
		return 0
	case 1:
		return AccessBlock(v[0])
	}
	return ^AccessBlock(0)
}
