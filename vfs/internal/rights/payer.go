package rights

import "ogw/vfs/internal/record"

// PayerConfig is the name under which BucketConfig keeps that who asks pays for requests
// to a bucket, and not its owner.
const PayerConfig = "requestPayment"

// RequesterPays reports whether who asks pays for requests to a bucket.
func RequesterPays(b record.Bucket) bool { return len(b[record.ConfigPrefix+PayerConfig]) > 0 }
