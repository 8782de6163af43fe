package rights

import "ogw/vfs/internal/record"

// PayerConfig is the name under which BucketConfig keeps that the requester pays for requests
// to a bucket, and not its owner.
const PayerConfig = "requestPayment"

// PayerAttr is the attribute of a bucket that holds it.
const PayerAttr = record.ConfigPrefix + PayerConfig

// RequesterPays reads what PayerAttr holds.
func RequesterPays(v []byte) bool { return len(v) > 0 }
