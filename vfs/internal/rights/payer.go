package rights

import "ogw/vfs/internal/record"

// PayerConfig is the name under which BucketConfig keeps that who asks pays for requests
// to a bucket, and not its owner.
const PayerConfig = "requestPayment"

const (
	// payerKey is the condition key by which a door tells that who asks will pay: the
	// header of that name.
	payerKey  = "s3:x-amz-request-payer"
	requester = "requester"
)

// RequesterPays reports whether who asks pays for requests to a bucket.
func RequesterPays(b record.Bucket) bool { return len(b[record.ConfigPrefix+PayerConfig]) > 0 }
