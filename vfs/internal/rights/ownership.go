package rights

// Ownership is who owns what is written into a bucket by others than its owner:
// S3's Object Ownership.
type Ownership uint8

// The values are stored.
const (
	OwnershipUnset     Ownership = iota // as OwnershipWriter
	OwnershipWriter                     // who writes an object owns it
	OwnershipPreferred                  // the bucket's owner, where the ACL says bucket-owner-full-control
	OwnershipEnforced                   // the bucket's owner owns everything, and ACLs give nothing
)

// readOwnership reads what is kept. What is not understood leaves the bucket to its
// owner.
func readOwnership(v []byte) Ownership {
	switch {
	case len(v) == 0:
		return OwnershipUnset
	case len(v) == 1 && v[0] <= byte(OwnershipEnforced):
		return Ownership(v[0])
	}
	return OwnershipEnforced
}
